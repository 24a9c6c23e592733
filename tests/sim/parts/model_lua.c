/* SPDX-License-Identifier: BSD-3-Clause */
/* model_lua.c - what scripts see: redis.call and the like, and of Lua what Redis leaves in */
#include "model_lua.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_ROOM 256
#define DIGITS     32
#define WHOLE_MAX  1e15

/* Names that every script needs: Lua hashes a text each time, and so it is kept. */
enum name { NAME_KEYS, NAME_ARGV, NAME_ERR, NAME_OK, NAME_SOURCE, NAME_LINE, NAMES };

/* All models of a thread share it. */
static _Thread_local struct {
    lua_State *lua;
    int globals, handler;
    int names[NAMES];
    struct call *call; /* of the script that runs */
    bool wrote;        /* that script */
    struct word words[WORDS_ROOM];
    char digits[WORDS_ROOM][DIGITS];
} shared;

void model_lua_sha(const struct word *text, char *ret)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    if (EVP_Digest(text->text, text->length, digest, &length, EVP_sha1(), NULL) != 1) abort();
    for (unsigned i = 0; i < length; i++) snprintf(ret + (size_t)2 * i, 3, "%02x", digest[i]);
}

/* ---- errors ---- */

/* {err = "CODE text"}; where the text has a dash in front, its first word is the code. */
static void push_error(lua_State *lua, const char *text)
{
    lua_createtable(lua, 0, 2);
    if (text[0] == '-' && strchr(text, ' ') != NULL)
        lua_pushstring(lua, text + 1);
    else
        lua_pushfstring(lua, "ERR %s", text + (text[0] == '-' ? 1 : 0));
    lua_setfield(lua, -2, "err");
    lua_pushboolean(lua, 1);
    lua_setfield(lua, -2, "ignore_error_stats_update");
}

/* Where an error arises: turns it into a table that says at which line. */
static int on_error(lua_State *lua)
{
    lua_Debug where;
    int level = 1;

    if (!lua_istable(lua, 1)) {
        const char *text = lua_tostring(lua, 1);

        lua_createtable(lua, 0, 3);
        lua_pushfstring(lua, "ERR %s", text != NULL ? text : luaL_typename(lua, 1));
        lua_setfield(lua, -2, "err");
    }
    if (lua_getstack(lua, level, &where) == 0) return 1;
    lua_getinfo(lua, "nSl", &where);
    if (strcmp(where.what, "C") == 0) {
        if (lua_getstack(lua, level + 1, &where) == 0) return 1;
        lua_getinfo(lua, "nSl", &where);
    }
    lua_pushstring(lua, where.source);
    lua_setfield(lua, -2, "source");
    lua_pushinteger(lua, where.currentline);
    lua_setfield(lua, -2, "line");
    return 1;
}

/* ---- redis.call ---- */

static int64_t read_whole(const char *digits)
{
    bool negative = *digits == '-';
    uint64_t number = 0;

    for (digits += negative; *digits >= '0' && *digits <= '9'; digits++)
        number = number * 10 + (uint64_t)(*digits - '0');
    return (int64_t)(negative ? 0 - number : number);
}

/* Pushes one reply as Lua has it; returns what is behind it. */
static const char *push_reply(lua_State *lua, const char *at)
{
    int64_t n = read_whole(at + 1);
    const char *end = strchr(at, '\r'), *behind = end + 2;

    switch (*at) {
    case ':': lua_pushnumber(lua, (lua_Number)n); break;
    case '+':
        lua_createtable(lua, 0, 1);
        lua_pushlstring(lua, at + 1, (size_t)(end - at - 1));
        lua_setfield(lua, -2, "ok");
        break;
    case '-':
        lua_pushlstring(lua, at, (size_t)(end - at));
        push_error(lua, lua_tostring(lua, -1));
        lua_remove(lua, -2);
        break;
    case '$':
        if (n < 0) {
            lua_pushboolean(lua, 0);
            break;
        }
        lua_pushlstring(lua, behind, (size_t)n);
        behind += n + 2;
        break;
    default:
        lua_createtable(lua, (int)n, 0);
        for (int i = 1; i <= n; i++) {
            behind = push_reply(lua, behind);
            lua_rawseti(lua, -2, i);
        }
    }
    return behind;
}

/* Why the command is refused inside a script; NULL: it is not. */
static const char *script_refusal(const struct call *call)
{
    const struct model_manners *manners = &call->model->manners;
    unsigned flags = call->command->flags;

    if (!command_takes(call->command, call->n_words)) return "Wrong number of args calling Redis command from script";
    if ((flags & NO_SCRIPT) != 0) return "This Redis command is not allowed from script";
    if (manners->replica && manners->master_down && (flags & STALE) == 0) return "-" ERROR_STALE;
    if (command_denied(call)) return "The user executing the script can't run this command or subcommand";
    if ((flags & WRITES) == 0 || shared.wrote) return NULL;
    if (manners->replica && !call->session->operator) return "-" ERROR_READONLY;
    if (manners->misconf) return "-" ERROR_MISCONF;
    if (manners->full && (flags & DENY_OOM) != 0) return "-" ERROR_OOM;
    return NULL;
}

/* As Redis writes numbers: "%.17g", which of whole ones shows the digits; printf takes ten times as long. */
static size_t write_number(char *ret, lua_Number number)
{
    if (number > -WHOLE_MAX && number < WHOLE_MAX && number == (lua_Number)(int64_t)number &&
        (number != 0 || signbit(number) == 0))
        return write_decimal(ret, (int64_t)number);
    return (size_t)snprintf(ret, DIGITS, "%.17g", number);
}

/* The arguments as words; an error's text where one is neither string nor number. */
static const char *to_words(lua_State *lua, size_t *ret_n)
{
    int n = lua_gettop(lua);

    if (n == 0) return "Please specify at least one argument for this redis lib call";
    if (n > WORDS_ROOM) model_panic("so many words in a script", "", 0);
    for (int i = 0; i < n; i++) {
        struct word *word = &shared.words[i];

        if (lua_type(lua, i + 1) == LUA_TNUMBER) {
            word->text = shared.digits[i];
            word->length = write_number(shared.digits[i], lua_tonumber(lua, i + 1));
        } else if (lua_type(lua, i + 1) == LUA_TSTRING) {
            word->text = lua_tolstring(lua, i + 1, &word->length);
        } else {
            return "Lua redis lib command arguments must be strings or integers";
        }
    }
    *ret_n = (size_t)n;
    return NULL;
}

/* Pushes the reply, or an error. */
static bool call_command(lua_State *lua)
{
    struct call call = *shared.call;
    struct out *out = &call.model->script_out;
    const char *why = to_words(lua, &call.n_words);

    out->used = 0;
    if (why == NULL) {
        call.script = shared.call;
        call.out = out;
        call.words = shared.words;
        call.command = command_find(call.model, call.words, call.n_words, out);
        why = call.command == NULL ? "Unknown Redis command called from script" : script_refusal(&call);
    }
    if (why != NULL) {
        push_error(lua, why);
        return false;
    }
    if ((call.command->flags & WRITES) != 0) shared.wrote = true;
    command_run(&call);
    out_bytes(out, "", 1);
    (void)push_reply(lua, out->bytes);
    return out->bytes[0] != '-';
}

static int redis_call(lua_State *lua)
{
    return call_command(lua) ? 1 : lua_error(lua);
}

static int redis_pcall(lua_State *lua)
{
    (void)call_command(lua);
    return 1;
}

/* Where the right to a command is asked for, the keys do not matter here. */
static int redis_acl_check_cmd(lua_State *lua)
{
    struct call call = *shared.call;
    const char *why = to_words(lua, &call.n_words);

    call.script = shared.call;
    call.words = shared.words;
    if (why == NULL) {
        call.model->script_out.used = 0;
        call.command = command_find(call.model, call.words, call.n_words, &call.model->script_out);
        if (call.command == NULL) why = "Invalid command passed to redis.acl_check_cmd()";
    }
    if (why != NULL) {
        push_error(lua, why);
        return lua_error(lua);
    }
    lua_pushboolean(lua, !command_denied(&call));
    return 1;
}

static int redis_error_reply(lua_State *lua)
{
    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
        push_error(lua, "wrong number or type of arguments");
        return 1;
    }
    if (lua_tostring(lua, 1)[0] != '-') {
        lua_pushfstring(lua, "-%s", lua_tostring(lua, 1));
        lua_replace(lua, 1);
    }
    push_error(lua, lua_tostring(lua, 1));
    return 1;
}

static int redis_status_reply(lua_State *lua)
{
    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
        push_error(lua, "wrong number or type of arguments");
        return 1;
    }
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "ok");
    return 1;
}

static int redis_sha1hex(lua_State *lua)
{
    struct word text = {NULL, 0};
    char sha[MODEL_SHA_LENGTH + 1];

    if (lua_gettop(lua) != 1) {
        push_error(lua, "wrong number of arguments");
        return lua_error(lua);
    }
    text.text = luaL_checklstring(lua, 1, &text.length);
    model_lua_sha(&text, sha);
    lua_pushlstring(lua, sha, MODEL_SHA_LENGTH);
    return 1;
}

/* ---- Lua itself ---- */

/* As Lua's, but of a table with an error's text it returns the text. */
static int caught(lua_State *lua)
{
    lua_pushboolean(lua, 1);
    lua_insert(lua, 1);
    if (lua_pcall(lua, lua_gettop(lua) - 2, LUA_MULTRET, 0) != 0) {
        if (lua_istable(lua, -1)) {
            lua_getfield(lua, -1, "err");
            lua_remove(lua, -2);
        }
        lua_pushboolean(lua, 0);
        lua_replace(lua, 1);
    }
    return lua_gettop(lua);
}

/* How many bytes at its front a pattern takes as they are. */
static size_t plain_front(const char *pattern, size_t length)
{
    size_t n = 0;

    while (n < length && pattern[n] != '\0' && strchr("^$*+?.()[%-", pattern[n]) == NULL) n++;
    /* The last may be optional. */
    return n > 0 && n < length && strchr("*?-", pattern[n]) != NULL ? n - 1 : n;
}

/* string.match of Lua, which tries at each byte, and so takes most of a script's time in the long text of INFO: it
 * begins where the pattern's plain front is found. */
static int match_from_front(lua_State *lua)
{
    size_t length, pattern_length, front;
    const char *text = luaL_checklstring(lua, 1, &length);
    const char *pattern = luaL_checklstring(lua, 2, &pattern_length);
    const char *found;

    front = lua_gettop(lua) == 2 ? plain_front(pattern, pattern_length) : 0;
    if (front > 0) {
        found = memmem(text, length, pattern, front);
        if (found == NULL) {
            lua_pushnil(lua);
            return 1;
        }
        lua_pushinteger(lua, found - text + 1);
    }
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
    return lua_gettop(lua);
}

static int refuse_global(lua_State *lua)
{
    static const char unmodelled[] = " cjson cmsgpack bit struct os print loadstring load ";
    const char *name = luaL_checkstring(lua, 2);
    char bounded[32];

    snprintf(bounded, sizeof(bounded), " %s ", name);
    if (strstr(unmodelled, bounded) != NULL) model_panic("in scripts", name, strlen(name));
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", name);
}

static int refuse_change(lua_State *lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table");
}

static int push_version(lua_State *lua, uint32_t version)
{
    if (version != 0)
        lua_pushinteger(lua, (lua_Integer)version);
    else
        lua_pushnil(lua);
    return 1;
}

static int refuse_of_redis(lua_State *lua)
{
    const char *name = luaL_checkstring(lua, 2);
    uint32_t version = model_version(shared.call->model);

    /* Told from 7 on. */
    if (strcmp(name, "REDIS_VERSION_NUM") == 0) return push_version(lua, version >= MODEL_VERSION_7 ? version : 0);
    if (strcmp(name, "VALKEY_VERSION_NUM") == 0) return push_version(lua, model_valkey(shared.call->model));
    model_panic("in scripts redis.", name, strlen(name));
}

static int refuse_random(lua_State *lua)
{
    (void)lua;
    model_panic("in scripts", "math.random", 11);
}

/* An empty table in place of the one on top, which it shows and protects. */
static void protect(lua_State *lua)
{
    lua_createtable(lua, 0, 0);
    lua_createtable(lua, 0, 2);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_change);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, -2);
    lua_remove(lua, -2);
}

/* On what is not in the table on top that function is called. */
static void on_missing(lua_State *lua, lua_CFunction function)
{
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, function);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -2);
}

static void add_redis(lua_State *lua)
{
    static const luaL_Reg functions[] = {{"call", redis_call},
                                         {"pcall", redis_pcall},
                                         {"error_reply", redis_error_reply},
                                         {"status_reply", redis_status_reply},
                                         {"sha1hex", redis_sha1hex},
                                         {"acl_check_cmd", redis_acl_check_cmd},
                                         {NULL, NULL}};

    lua_newtable(lua);
    for (const luaL_Reg *at = functions; at->name != NULL; at++) {
        lua_pushcfunction(lua, at->func);
        lua_setfield(lua, -2, at->name);
    }
    on_missing(lua, refuse_of_redis);
    lua_setfield(lua, -2, "redis");
}

/* Of Lua's own only what Redis has, too, and the same everywhere. */
static void add_libraries(lua_State *lua)
{
    static const luaL_Reg libraries[] = {
        {"", luaopen_base}, {"table", luaopen_table}, {"string", luaopen_string}, {"math", luaopen_math}};
    static const char *const removed[] = {"print",    "dofile",  "loadfile", "load",           "loadstring",
                                          "newproxy", "module",  "require",  "collectgarbage", "gcinfo",
                                          "_G",       "getfenv", "setfenv"};

    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        lua_pushcfunction(lua, libraries[i].func);
        lua_pushstring(lua, libraries[i].name);
        lua_call(lua, 1, 0);
    }
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    for (size_t i = 0; i < sizeof(removed) / sizeof(removed[0]); i++) {
        lua_pushnil(lua);
        lua_setfield(lua, -2, removed[i]);
    }
    lua_pushcfunction(lua, caught);
    lua_setfield(lua, -2, "pcall");
    lua_getfield(lua, -1, "math");
    lua_pushcfunction(lua, refuse_random);
    lua_setfield(lua, -2, "random");
    lua_getfield(lua, -2, "string");
    lua_getfield(lua, -1, "match");
    lua_pushcclosure(lua, match_from_front, 1);
    lua_setfield(lua, -2, "match");
    lua_pop(lua, 2);
}

static void keep_names(lua_State *lua)
{
    static const char *const texts[NAMES] = {"KEYS", "ARGV", "err", "ok", "source", "line"};

    for (int i = 0; i < NAMES; i++) {
        lua_pushstring(lua, texts[i]);
        shared.names[i] = luaL_ref(lua, LUA_REGISTRYINDEX);
    }
}

void model_lua_open(void)
{
    lua_State *lua = lua_newstate(model_pool, NULL);

    if (lua == NULL) abort();
    shared.lua = lua;
    add_libraries(lua);
    add_redis(lua);
    on_missing(lua, refuse_global);
    lua_pushvalue(lua, -1);
    shared.globals = luaL_ref(lua, LUA_REGISTRYINDEX);
    protect(lua);
    lua_replace(lua, LUA_GLOBALSINDEX);
    lua_pushcfunction(lua, on_error);
    shared.handler = luaL_ref(lua, LUA_REGISTRYINDEX);
    keep_names(lua);
    lua_settop(lua, 0);
}

void model_lua_close(void)
{
    lua_close(shared.lua);
    model_pool_free();
    shared.lua = NULL;
}

/* ---- execution ---- */

bool model_lua_compile(const struct word *text, struct out *out, int *ret)
{
    lua_State *lua = shared.lua;

    if (luaL_loadbuffer(lua, text->text, text->length, "@user_script") != 0) {
        out_error(out, "ERR Error compiling script (new function): %s", lua_tostring(lua, -1));
        lua_pop(lua, 1);
        return false;
    }
    *ret = luaL_ref(lua, LUA_REGISTRYINDEX);
    return true;
}

/* The text at that name of the table on top, NULL where it is none; it stays on the stack. */
static const char *push_text(lua_State *lua, enum name name, int type)
{
    lua_rawgeti(lua, LUA_REGISTRYINDEX, shared.names[name]);
    lua_rawget(lua, -2);
    return lua_type(lua, -1) == type ? lua_tostring(lua, -1) : NULL;
}

/* Replies the value on top, and takes it away. */
static void reply_value(lua_State *lua, struct out *out)
{
    size_t length, n = 0;
    const char *text;

    if (lua_checkstack(lua, 4) == 0) model_panic("scripts whose replies are so deep", "", 0);
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text = lua_tolstring(lua, -1, &length);
        out_bulk(out, text, length);
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(lua, -1) != 0)
            out_number(out, 1);
        else
            out_nil(out);
        break;
    case LUA_TNUMBER: out_number(out, (int64_t)lua_tonumber(lua, -1)); break;
    case LUA_TTABLE:
        text = push_text(lua, NAME_ERR, LUA_TSTRING);
        if (text != NULL) out_error(out, "%s", text);
        lua_pop(lua, 1);
        if (text != NULL) break;
        text = push_text(lua, NAME_OK, LUA_TSTRING);
        if (text != NULL) out_status_line(out, text);
        lua_pop(lua, 1);
        if (text != NULL) break;
        for (;; n++) {
            lua_rawgeti(lua, -1, (int)n + 1);
            if (lua_isnil(lua, -1)) break;
            lua_pop(lua, 1);
        }
        lua_pop(lua, 1);
        out_array(out, n);
        for (size_t i = 1; i <= n; i++) {
            lua_rawgeti(lua, -1, (int)i);
            reply_value(lua, out);
        }
        break;
    default: out_nil(out);
    }
    lua_pop(lua, 1);
}

/* Replies the error on top. */
static void reply_error(lua_State *lua, const char *sha, struct out *out)
{
    const char *text, *source, *line;

    if (!lua_istable(lua, -1)) {
        out_error(out, "ERR Error running script, %.100s", lua_tostring(lua, -1));
        return;
    }
    text = push_text(lua, NAME_ERR, LUA_TSTRING);
    lua_insert(lua, -2);
    source = push_text(lua, NAME_SOURCE, LUA_TSTRING);
    lua_insert(lua, -2);
    line = push_text(lua, NAME_LINE, LUA_TNUMBER);
    /* Redis 7.0 crashes here. */
    if (text == NULL) model_panic("errors in scripts without", "err", 3);
    if (source != NULL && line != NULL)
        out_error(out, "%s script: %s, on %s:%s.", text, sha, source, line);
    else
        out_error(out, "%s", text);
}

static void set_list(lua_State *lua, enum name name, const struct word *words, size_t n)
{
    lua_createtable(lua, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushlstring(lua, words[i].text, words[i].length);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_rawgeti(lua, LUA_REGISTRYINDEX, shared.names[name]);
    lua_insert(lua, -2);
    lua_rawset(lua, -3);
}

void model_lua_run(struct call *call, int function, const char *sha, size_t n_keys)
{
    lua_State *lua = shared.lua;

    shared.call = call;
    shared.wrote = false;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, shared.globals);
    set_list(lua, NAME_KEYS, call->words + 3, n_keys);
    set_list(lua, NAME_ARGV, call->words + 3 + n_keys, call->n_words - 3 - n_keys);
    lua_settop(lua, 0);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, shared.handler);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, function);
    if (lua_pcall(lua, 0, 1, 1) != 0)
        reply_error(lua, sha, call->out);
    else
        reply_value(lua, call->out);
    lua_settop(lua, 0);
    shared.call = NULL;
}
