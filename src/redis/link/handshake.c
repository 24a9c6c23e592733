/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/handshake.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "redis/dialect/guard.h"
#include "redis/wire/errors.h"
#include "redis/wire/info.h"
#include "scripts.h"

#define NOT_REDIS "not a Redis server: "

static void handshake_add(struct handshake *shake, enum handshake_step step)
{
    assert(shake->n_steps < HANDSHAKE_STEPS);
    shake->steps[shake->n_steps++] = step;
}

static void auth(struct handshake *shake, struct bytes *out)
{
    const struct uri *uri = shake->uri;
    const char *password = uri->password != NULL ? uri->password : "";

    if (uri->user == NULL && uri->password == NULL) return;
    if (uri->user != NULL)
        BYTES_TEXTS(out, "AUTH", uri->user, password);
    else
        BYTES_TEXTS(out, "AUTH", password);
    handshake_add(shake, HANDSHAKE_AUTH);
}

static void select_db(struct handshake *shake, struct bytes *out)
{
    if (shake->uri->db == 0) return;
    bytes_command(out, 2);
    bytes_text(out, "SELECT");
    bytes_number(out, shake->uri->db);
    handshake_add(shake, HANDSHAKE_SELECT);
}

static void setname(struct handshake *shake, struct bytes *out, const char *client_name)
{
    if (client_name == NULL || client_name[0] == '\0') return;
    BYTES_TEXTS(out, "CLIENT", "SETNAME", client_name);
    handshake_add(shake, HANDSHAKE_SETNAME);
}

static void rights(struct handshake *shake, struct bytes *out)
{
    const char *const *commands = shake->dialect->commands;
    size_t n = 0;

    if (shake->uri->tls && shake->uri->user == NULL) {
        BYTES_TEXTS(out, "ACL", "WHOAMI");
        handshake_add(shake, HANDSHAKE_USER);
    }
    while (commands[n] != NULL) n++;
    bytes_command(out, 3 + n);
    bytes_text(out, "EVAL");
    bytes_word(out, script_rights, sizeof(script_rights) - 1);
    bytes_text(out, "0");
    for (size_t i = 0; i < n; i++) bytes_text(out, commands[i]);
    handshake_add(shake, HANDSHAKE_RIGHTS);
}

/* A server, or a user's rights, may have none of this: then changes are seen by scripts only. OPTIN: the server
 * remembers no other key for us. Not NOLOOP: a full table that makes room while it executes our own command would
 * forget the guard without a word. */
static void track(struct handshake *shake, struct bytes *out)
{
    BYTES_TEXTS(out, "HELLO", "3");
    handshake_add(shake, HANDSHAKE_HELLO);
    BYTES_TEXTS(out, "CLIENT", "TRACKING", "ON", "OPTIN");
    handshake_add(shake, HANDSHAKE_TRACKING);
    guard_track(out);
    handshake_add(shake, HANDSHAKE_CACHING);
}

void handshake_begin(struct handshake *shake, struct bytes *out, const struct uri *uri, const char *client_name,
                     const struct dialect *dialect, enum handshake_eviction eviction)
{
    *shake = (struct handshake){.uri = uri, .dialect = dialect, .evicting_fine = eviction != HANDSHAKE_EVICTION_FAILS};
    auth(shake, out);
    select_db(shake, out);
    setname(shake, out, client_name);
    /* One INFO for each section: only Redis 7 takes several in one command. */
    BYTES_TEXTS(out, "INFO", "server");
    handshake_add(shake, HANDSHAKE_SERVER);
    BYTES_TEXTS(out, "INFO", "replication");
    handshake_add(shake, HANDSHAKE_REPLICATION);
    if (eviction != HANDSHAKE_EVICTION_UNASKED) {
        BYTES_TEXTS(out, "INFO", "memory");
        handshake_add(shake, HANDSHAKE_MEMORY);
        rights(shake, out);
        track(shake, out);
    } else {
        BYTES_TEXTS(out, "EVAL", "return ''", "0");
        handshake_add(shake, HANDSHAKE_AWAKE);
    }
}

void handshake_greet(struct handshake *shake, struct bytes *out, const struct uri *uri, const char *client_name)
{
    *shake = (struct handshake){.uri = uri};
    auth(shake, out);
    setname(shake, out, client_name);
    BYTES_TEXTS(out, "PING");
    handshake_add(shake, HANDSHAKE_PING);
}

void handshake_knock(struct handshake *shake, struct bytes *out, const struct uri *uri)
{
    *shake = (struct handshake){.uri = uri};
    auth(shake, out);
    /* Redis 8 and Valkey 8.1 do not answer an AUTH that they refuse, if it came together with a command before it. */
    if (shake->n_steps == 0) {
        BYTES_TEXTS(out, "TIME", "?");
        handshake_add(shake, HANDSHAKE_KNOCK);
    }
    select_db(shake, out);
}

void handshake_look(struct handshake *shake, struct bytes *out, const struct uri *uri)
{
    *shake = (struct handshake){.uri = uri};
    auth(shake, out);
    select_db(shake, out);
    BYTES_TEXTS(out, "INFO", "server");
    handshake_add(shake, HANDSHAKE_SERVER);
}

void handshake_hear(struct handshake *shake, const char *data, size_t length)
{
    size_t room = sizeof(shake->first) - shake->n_first;
    size_t taken = length < room ? length : room;

    if (taken != 0) memcpy(shake->first + shake->n_first, data, taken);
    shake->n_first += taken;
}

void handshake_malformed(const struct handshake *shake, bool first, const char *reason, char *ret, size_t size)
{
    const char *hint = shake->n_first != 0 && shake->first[0] == 0x15 ? "; it speaks TLS: write rediss://" : "";
    char said[HANDSHAKE_FIRST_BYTES + 1];
    size_t line = 0;

    if (!first) {
        snprintf(ret, size, "malformed reply: %s", reason);
        return;
    }
    while (line < shake->n_first && shake->first[line] != '\r' && shake->first[line] != '\n') line++;
    if (uri_reveals_password(shake->uri, shake->first, line)) line = 0;
    error_printable(said, sizeof(said), shake->first, line);
    if (said[0] != '\0')
        snprintf(ret, size, "not a Redis server: it says \"%s\"%s", said, hint);
    else
        snprintf(ret, size, "not a Redis server%s", hint);
}

__attribute__((format(printf, 3, 4))) static enum handshake_result
handshake_fail(struct handshake *shake, enum fault fault, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(shake->why, sizeof(shake->why), format, args);
    va_end(args);
    shake->fault = fault;
    return HANDSHAKE_FAILED;
}

void handshake_describe(const struct uri *uri, const char *what, const struct reply_item *error, char *ret, size_t size)
{
    if (uri_reveals_password(uri, error->text, error->length))
        snprintf(ret, size, "%s: refused", what);
    else
        error_describe(ret, size, what, error->text, error->length);
}

/* The server refused AUTH because of the user or the password, not because of its own state. */
static enum handshake_result auth_error(struct handshake *shake, const struct reply_item *item)
{
    const struct uri *uri = shake->uri;
    char name[64], user[80] = "the default user";

    if (uri->user != NULL && uri->password != NULL)
        snprintf(user, sizeof(user), "user \"%s\"", error_printable(name, sizeof(name), uri->user, strlen(uri->user)));
    /* "redis://secret@host" was probably meant as "redis://:secret@host". */
    if (uri->user != NULL && uri->password == NULL) snprintf(user, sizeof(user), "a user without a password");
    if (reply_begins(item, "WRONGPASS"))
        return handshake_fail(shake, FAULT_LOGIN,
                              "WRONGPASS: wrong password for %s, or that user is unknown or disabled", user);
    if (memmem(item->text, item->length, "without any password", 20) != NULL)
        return handshake_fail(shake, FAULT_LOGIN,
                              "AUTH: the server has no password for %s, but the address or an option gives one: "
                              "remove it, or set one on the server",
                              user);
    if (uri_reveals_password(uri, item->text, item->length) || (uri->user != NULL && uri->password == NULL))
        return handshake_fail(shake, FAULT_LOGIN, "AUTH: refused for %s", user);
    shake->fault = FAULT_LOGIN;
    error_describe(shake->why, sizeof(shake->why), "AUTH", item->text, item->length);
    return HANDSHAKE_FAILED;
}

/* What every server of ours has is missing. With HELLO still to come, its answer is awaited: it may name the server. */
static enum handshake_result handshake_doubt(struct handshake *shake, enum fault fault, const char *why)
{
    char copy[sizeof(shake->why)];

    snprintf(copy, sizeof(copy), "%s", why);
    (void)handshake_fail(shake, fault, "%s", copy);
    for (size_t i = shake->at; i < shake->n_steps; i++) shake->doubted |= shake->steps[i] == HANDSHAKE_HELLO;
    return shake->doubted ? HANDSHAKE_MORE : HANDSHAKE_FAILED;
}

void handshake_still_doubted(const struct handshake *shake, enum fault *fault, char *why, size_t size)
{
    bool said = strncmp(shake->why, NOT_REDIS, strlen(NOT_REDIS)) == 0;

    /* No server of ours answers HELLO with what cannot be read, but one that restarts ends the connection. */
    if (*fault != FAULT_PROTO) *fault = shake->fault;
    snprintf(why, size, "%s%s", *fault == FAULT_PROTO && !said ? NOT_REDIS : "", shake->why);
}

/* Read a field of INFO; false: there is none. */
static bool handshake_field(const struct reply_item *info, const char *name, char *ret, size_t size)
{
    return info_field(info->text, info->length, name, ret, size);
}

static enum handshake_result server(struct handshake *shake, const struct reply_item *info)
{
    char version[20], mode[20] = "";
    struct info_server found;

    if (!info_server(info->text, info->length, &found, version, sizeof(version)))
        return handshake_doubt(shake, FAULT_PROTO, NOT_REDIS "INFO has no redis_version");
    /* Only digits and dots of the version are shown. */
    version[strspn(version, "0123456789.")] = '\0';
    snprintf(shake->version, sizeof(shake->version), "%s %s", found.kind, version);
    info_mode(info->text, info->length, mode, sizeof(mode));
    if (strcmp(mode, "sentinel") == 0)
        return handshake_fail(shake, FAULT_PROTO,
                              "a Sentinel, not a Redis server: give the address of the server itself");
    if (strcmp(mode, "cluster") == 0)
        return handshake_fail(shake, FAULT_CLUSTER,
                              "the server runs in cluster mode: list independent masters, with cluster-enabled no");
    if (found.too_old)
        return handshake_fail(shake, FAULT_PROTO, "%s %s is too old: %s %u.%u or newer is needed", found.kind, version,
                              found.kind, found.major, found.minor);
    if (!handshake_field(info, "run_id", shake->run_id, sizeof(shake->run_id)) || shake->run_id[0] == '\0')
        return handshake_doubt(shake, FAULT_PROTO, NOT_REDIS "INFO has no run_id");
    return HANDSHAKE_MORE;
}

/* Rule 4.14. */
static enum handshake_result replication(struct handshake *shake, const struct reply_item *info)
{
    char role[16], master[128] = "?", port[8] = "?";

    if (!handshake_field(info, "role", role, sizeof(role)))
        return handshake_doubt(shake, FAULT_PROTO, NOT_REDIS "INFO has no role");
    (void)handshake_field(info, "master_replid", shake->replid, sizeof(shake->replid));
    if (strcmp(role, "master") == 0 && shake->replid[0] == '\0')
        return handshake_doubt(shake, FAULT_PROTO, NOT_REDIS "INFO has no master_replid");
    if (strcmp(role, "master") == 0) return HANDSHAKE_MORE;
    (void)handshake_field(info, "master_host", master, sizeof(master));
    (void)handshake_field(info, "master_port", port, sizeof(port));
    if (uri_reveals_password(shake->uri, master, strlen(master)) ||
        uri_reveals_password(shake->uri, port, strlen(port)))
        return handshake_fail(shake, FAULT_REPLICA, "the server is a replica: list independent masters only");
    return handshake_fail(shake, FAULT_REPLICA, "the server is a replica of %s:%s: list independent masters only",
                          master, port);
}

static enum handshake_result memory(struct handshake *shake, const struct reply_item *info)
{
    char most[24] = "0", policy[32] = "noeviction";

    (void)handshake_field(info, "maxmemory", most, sizeof(most));
    (void)handshake_field(info, "maxmemory_policy", policy, sizeof(policy));
    if (strcmp(most, "0") == 0 || strcmp(policy, "noeviction") == 0) return HANDSHAKE_MORE;
    snprintf(shake->warning, sizeof(shake->warning),
             "the server may evict locks: maxmemory is %s bytes with maxmemory-policy %s: set maxmemory-policy "
             "noeviction",
             most, policy);
    if (shake->evicting_fine) return HANDSHAKE_MORE;
    return handshake_fail(shake, FAULT_CONFIG, "%s, or allow eviction", shake->warning);
}

/* Return the dialect's command at the beginning of the text, which ends at a blank or the end; NULL: none. */
static const char *handshake_find_command(const struct handshake *shake, const char *text, size_t length)
{
    for (const char *const *command = shake->dialect->commands; *command != NULL; command++) {
        size_t n = strlen(*command);

        if (length < n || memcmp(text, *command, n) != 0) continue;
        if (length == n || text[n] == ' ') return *command;
    }
    return NULL;
}

/* From Redis 8.6 and Valkey 9.1 on the certificate may name the user. */
static enum handshake_result user_reply(struct handshake *shake, const struct reply_item *user)
{
    error_printable(shake->user, sizeof(shake->user), user->text, user->length);
    return HANDSHAKE_MORE;
}

/* The reply lists the commands that the user may not run. A lock that cannot be renewed would be lost at its first
 * renewal. */
static enum handshake_result rights_reply(struct handshake *shake, const struct reply_item *refused)
{
    char user[64], rules[96] = "";
    const char *given = shake->uri->user != NULL ? shake->uri->user : "default";
    const char *name = shake->user[0] != '\0' ? shake->user : given;
    size_t n = 0;

    if (refused->length == 0) return HANDSHAKE_MORE;
    for (size_t at = 0; at < refused->length;) {
        const char *command = handshake_find_command(shake, refused->text + at, refused->length - at);

        if (command == NULL || n + strlen(command) + 3 > sizeof(rules))
            return handshake_fail(shake, FAULT_PROTO,
                                  "EVAL: a reply that does not fit the request: not a Redis server?");
        n += (size_t)snprintf(rules + n, sizeof(rules) - n, "%s+%s", at != 0 ? " " : "", command);
        at += strlen(command) + 1;
    }
    error_printable(user, sizeof(user), name, strlen(name));
    for (char *p = rules; *p != '\0'; p++) *p = (char)tolower((unsigned char)*p);
    return handshake_fail(shake, FAULT_AUTH,
                          "user \"%s\" may not run %.*s, so locks could not be renewed or released "
                          "(ACL SETUSER %s %s; or undo its rename-command)",
                          user, (int)refused->length, refused->text, user, rules);
}

static enum handshake_result hello(struct handshake *shake, const struct reply_item *nothing)
{
    (void)nothing;
    shake->resp3 = true;
    return HANDSHAKE_MORE;
}

/* Without RESP3 a server says OK, and then tells nothing. */
static enum handshake_result tracking(struct handshake *shake, const struct reply_item *nothing)
{
    (void)nothing;
    shake->tracks = shake->resp3;
    return HANDSHAKE_MORE;
}

/* What a step must be answered with, and what is to be read there. The refusal of an optional one changes nothing. */
static const struct {
    const char *name;
    enum reply_type type;
    bool optional;
    enum handshake_result (*judge)(struct handshake *, const struct reply_item *);
} steps[] = {
    [HANDSHAKE_KNOCK] = {"TIME", REPLY_ERROR, true, NULL},
    [HANDSHAKE_AUTH] = {"AUTH", REPLY_STATUS, false, NULL},
    [HANDSHAKE_SELECT] = {"SELECT", REPLY_STATUS, false, NULL},
    [HANDSHAKE_SETNAME] = {"CLIENT SETNAME", REPLY_STATUS, true, NULL},
    [HANDSHAKE_PING] = {"PING", REPLY_STATUS, false, NULL},
    [HANDSHAKE_SERVER] = {"INFO", REPLY_STRING, false, server},
    [HANDSHAKE_REPLICATION] = {"INFO", REPLY_STRING, false, replication},
    [HANDSHAKE_MEMORY] = {"INFO", REPLY_STRING, false, memory},
    [HANDSHAKE_USER] = {"ACL WHOAMI", REPLY_STRING, true, user_reply},
    [HANDSHAKE_RIGHTS] = {"EVAL", REPLY_STRING, false, rights_reply},
    [HANDSHAKE_AWAKE] = {"EVAL", REPLY_STRING, true, NULL},
    [HANDSHAKE_HELLO] = {"HELLO", REPLY_MAP, true, hello},
    [HANDSHAKE_TRACKING] = {"CLIENT TRACKING", REPLY_STATUS, true, tracking},
    [HANDSHAKE_CACHING] = {"CLIENT CACHING", REPLY_STATUS, true, NULL},
};

static enum handshake_result handshake_judge_error(struct handshake *shake, enum handshake_step step, const char *name,
                                                   const struct reply_item *item)
{
    struct error_class class = error_classify(item->text, item->length);
    bool plain_refusal = class.fault == FAULT_OTHER || class.fault == FAULT_AUTH || class.fault == FAULT_LOGIN;
    bool noauth = reply_begins(item, "NOAUTH");
    bool busy = class.fault == FAULT_TEMPORARY && !class.reconnect;
    bool shut = noauth || busy || class.fault == FAULT_REFUSED;

    if (step == HANDSHAKE_AUTH && plain_refusal && !noauth) return auth_error(shake, item);
    /* The name only matters in CLIENT LIST. A client that only inspects may lack the right to this script, and use
     * other commands. Without RESP3 or tracking a change of the guard is noticed later. */
    if (steps[step].optional && plain_refusal && !noauth) return HANDSHAKE_MORE;
    /* A server that loads its data accepts subscribers, and they need no right to PING. A server that is full,
     * protected or busy does not accept them. */
    if (step == HANDSHAKE_PING && !shut) return HANDSHAKE_MORE;
    shake->fault = class.fault;
    /* A server that is full or protected says so before it reads our first command. */
    if (class.fault == FAULT_REFUSED && shake->at == 0) name = "refused";
    handshake_describe(shake->uri, name, item, shake->why, sizeof(shake->why));
    if (strcmp(name, "INFO") == 0 && plain_refusal && !noauth) return handshake_doubt(shake, class.fault, shake->why);
    return HANDSHAKE_FAILED;
}

/* Of a server that is doubted, only HELLO's answer matters. */
static enum handshake_result handshake_hear_name(struct handshake *shake, const struct reply *reply)
{
    char lacks[sizeof(shake->why)];
    const char *words = lacks;

    if (shake->steps[shake->at++] != HANDSHAKE_HELLO) return HANDSHAKE_MORE;
    shake->doubted = false;
    info_other(reply, shake->other, sizeof(shake->other));
    if (shake->other[0] == '\0' || uri_reveals_password(shake->uri, shake->other, strlen(shake->other)))
        return HANDSHAKE_FAILED;
    memcpy(lacks, shake->why, sizeof(lacks));
    if (strncmp(words, NOT_REDIS, strlen(NOT_REDIS)) == 0) words += strlen(NOT_REDIS);
    return handshake_fail(shake, FAULT_PROTO, "not a Redis server, but %s: %s", shake->other, words);
}

static enum handshake_result handshake_judge(struct handshake *shake, enum handshake_step step,
                                             const struct reply *reply)
{
    const struct reply_item *self = &reply->self;
    const char *name = steps[step].name;
    bool refuses = self->type == REPLY_ERROR && error_classify(self->text, self->length).fault == FAULT_REFUSED;

    if (step == HANDSHAKE_KNOCK && !refuses) return HANDSHAKE_MORE;
    if (self->type == REPLY_ERROR) return handshake_judge_error(shake, step, name, self);
    if (self->type != steps[step].type)
        return handshake_fail(shake, FAULT_PROTO, "%s: an unexpected reply: not a Redis server?", name);
    return steps[step].judge != NULL ? steps[step].judge(shake, self) : HANDSHAKE_MORE;
}

enum handshake_result handshake_reply(struct handshake *shake, const struct reply *reply)
{
    enum handshake_result result;

    assert(shake->at < shake->n_steps);
    if (shake->doubted) return handshake_hear_name(shake, reply);
    result = handshake_judge(shake, shake->steps[shake->at], reply);
    if (result != HANDSHAKE_MORE) return result;
    shake->at++;
    return shake->at == shake->n_steps ? HANDSHAKE_DONE : HANDSHAKE_MORE;
}
