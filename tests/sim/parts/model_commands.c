/* SPDX-License-Identifier: BSD-3-Clause */
/* model_commands.c - the table of commands, and what forbids one now */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model_own.h"

#define ADMIN (NO_SCRIPT | LOADS | STALE)

#define RECENT        64
#define RECENT_LENGTH 16

/* Sorted by name, with the flags that COMMAND INFO of Redis 7.0 shows. */
static const struct command commands[] = {
    {"acl", -2, CONTAINER, NULL},
    {"acl|whoami", 2, ADMIN, run_acl_whoami},
    {"append", 3, WRITES | DENY_OOM, run_append},
    {"auth", -2, NO_SCRIPT | LOADS | STALE | NO_AUTH | WHEN_BUSY, run_auth},
    {"client", -2, CONTAINER, NULL},
    {"client|caching", 3, ADMIN, run_client_caching},
    {"client|getname", 2, ADMIN, run_client_getname},
    {"client|id", 2, ADMIN, run_client_id},
    {"client|kill", -3, ADMIN, run_client_kill},
    {"client|setname", 3, ADMIN, run_client_setname},
    {"client|tracking", -3, ADMIN, run_client_tracking},
    {"config", -2, CONTAINER, NULL},
    {"config|get", -3, ADMIN, run_config_get},
    {"del", -2, WRITES, run_del},
    {"discard", 1, NO_SCRIPT | LOADS | STALE | WHEN_BUSY | UNQUEUED, run_discard},
    {"eval", -3, NO_SCRIPT | STALE, run_eval},
    {"evalsha", -3, NO_SCRIPT | STALE, run_evalsha},
    {"exec", 1, NO_SCRIPT | LOADS | STALE | UNQUEUED, run_exec},
    {"exists", -2, 0, run_exists},
    {"expire", -3, WRITES, run_expire},
    {"expireat", -3, WRITES, run_expireat},
    {"flushall", -1, WRITES, run_flushall},
    {"flushdb", -1, WRITES, run_flushdb},
    {"get", 2, 0, run_get},
    {"getdel", 2, WRITES, run_getdel},
    {"getrange", 4, 0, run_getrange},
    {"hdel", -3, WRITES, run_hdel},
    {"hello", -1, NO_SCRIPT | LOADS | STALE | NO_AUTH | WHEN_BUSY, run_hello},
    {"hexists", 3, 0, run_hexists},
    {"hget", 3, 0, run_hget},
    {"hgetall", 2, 0, run_hgetall},
    {"hincrby", 4, WRITES | DENY_OOM, run_hincrby},
    {"hkeys", 2, 0, run_hkeys},
    {"hlen", 2, 0, run_hlen},
    {"hscan", -3, 0, run_hscan},
    {"hset", -4, WRITES | DENY_OOM, run_hset},
    {"incr", 2, WRITES | DENY_OOM, run_incr},
    {"incrby", 3, WRITES | DENY_OOM, run_incrby},
    {"info", -1, LOADS | STALE, run_info},
    {"llen", 2, 0, run_llen},
    {"lpush", -3, WRITES | DENY_OOM, run_lpush},
    {"lrange", 4, 0, run_lrange},
    {"mget", -2, 0, run_mget},
    {"msetex", -4, WRITES | DENY_OOM, run_msetex},
    {"multi", 1, NO_SCRIPT | LOADS | STALE | WHEN_BUSY | UNQUEUED, run_multi},
    {"persist", 2, WRITES, run_persist},
    {"pexpire", -3, WRITES, run_pexpire},
    {"pexpireat", -3, WRITES, run_pexpireat},
    {"ping", -1, IN_PUBSUB, run_ping},
    {"pttl", 2, 0, run_pttl},
    {"publish", 3, LOADS | STALE, run_publish},
    {"pubsub", -2, CONTAINER, NULL},
    {"pubsub|numpat", 2, LOADS | STALE, run_pubsub_numpat},
    {"pubsub|numsub", -2, LOADS | STALE, run_pubsub_numsub},
    {"rpush", -3, WRITES | DENY_OOM, run_rpush},
    {"sadd", -3, WRITES | DENY_OOM, run_sadd},
    {"scan", -2, 0, run_scan},
    {"scard", 2, 0, run_scard},
    {"script", -2, CONTAINER, NULL},
    {"script|exists", -3, NO_SCRIPT, run_script_exists},
    {"script|flush", -2, NO_SCRIPT, run_script_flush},
    {"script|load", 3, NO_SCRIPT | STALE, run_script_load},
    {"select", 2, LOADS | STALE, run_select},
    {"set", -3, WRITES | DENY_OOM, run_set},
    {"setnx", 3, WRITES | DENY_OOM, run_setnx},
    {"strlen", 2, 0, run_strlen},
    {"subscribe", -2, NO_SCRIPT | LOADS | STALE | IN_PUBSUB, run_subscribe},
    {"time", 1, LOADS | STALE, run_time},
    {"ttl", 2, 0, run_ttl},
    {"type", 2, 0, run_type},
    {"unsubscribe", -1, NO_SCRIPT | LOADS | STALE | IN_PUBSUB, run_unsubscribe},
    {"zadd", -4, WRITES | DENY_OOM, run_zadd},
    {"zcard", 2, 0, run_zcard},
    {"zcount", 4, 0, run_zcount},
    {"zrange", -4, 0, run_zrange},
    {"zrangebyscore", -4, 0, run_zrangebyscore},
    {"zrem", -3, WRITES, run_zrem},
    {"zremrangebyscore", 4, WRITES, run_zremrangebyscore},
    {"zscore", 3, 0, run_zscore},
};

/* What Redis 7.0 knows besides. */
static const char unmodelled[] =
    " acl|cat acl|deluser acl|dryrun acl|genpass acl|getuser acl|help acl|list acl|load acl|log acl|save acl|setuser "
    "acl|users asking bgrewriteaof bgsave bitcount bitfield bitfield_ro bitop bitpos blmove blmpop blpop brpop "
    "brpoplpush "
    "bzmpop bzpopmax bzpopmin client|getredir client|help client|info client|list client|no-evict "
    "client|pause client|reply client|trackinginfo client|unblock client|unpause cluster command "
    "config|help config|resetstat config|rewrite config|set copy dbsize debug decr decrby dump echo eval_ro "
    "evalsha_ro expiretime failover fcall fcall_ro function geoadd geodist geohash geopos georadius georadius_ro "
    "georadiusbymember georadiusbymember_ro geosearch geosearchstore getbit getex getrange getset hincrbyfloat "
    "hkeys hmget hmset hrandfield hsetnx hstrlen hvals incrbyfloat keys lastsave latency lcs lindex linsert lmove "
    "lmpop lolwut lpop lpos lpushx lrem lset ltrim memory migrate module monitor move mset msetnx object "
    "pexpiretime pfadd pfcount pfdebug pfmerge pfselftest psetex psubscribe psync pubsub|channels pubsub|help "
    "pubsub|shardchannels pubsub|shardnumsub punsubscribe quit randomkey readonly readwrite rename "
    "renamenx replconf replicaof reset restore restore-asking role rpop rpoplpush rpushx save scan script|debug "
    "script|help script|kill sdiff sdiffstore setbit setex setrange shutdown sinter sintercard sinterstore sismember "
    "slaveof slowlog smembers smismember smove sort sort_ro spop spublish srandmember srem sscan ssubscribe substr "
    "sunion sunionstore sunsubscribe swapdb sync touch unlink unwatch wait watch xack xadd xautoclaim xclaim xdel "
    "xgroup xinfo xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim zdiff zdiffstore "
    "zincrby zinter zintercard zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrangebylex "
    "zrangestore zrank zremrangebylex zremrangebyrank zrevrange zrevrangebylex "
    "zrevrangebyscore zrevrank zscan zunion zunionstore ";

static int compare(const void *name, const void *command)
{
    return strcmp(name, ((const struct command *)command)->name);
}

static const struct command *find(const char *name)
{
    return bsearch(name, commands, sizeof(commands) / sizeof(commands[0]), sizeof(commands[0]), compare);
}

/* In small letters with a NUL behind; false: no command is so long. */
static bool lower(const struct word *word, char *ret, size_t size)
{
    if (word->length == 0 || word->length >= size) return false;
    for (size_t i = 0; i < word->length; i++) {
        char byte = word->text[i];

        ret[i] = byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
    }
    ret[word->length] = '\0';
    return strlen(ret) == word->length;
}

/* What was found before, by its text as it was sent: commands come in the same few forms again and again. */
struct recent {
    const struct command *container, *command;
    size_t length;
    char text[RECENT_LENGTH];
};

static struct recent *recent_of(const struct word *word)
{
    static _Thread_local struct recent all[RECENT];

    if (word->length == 0 || word->length > RECENT_LENGTH) return NULL;
    return &all[(word->length * 7 + (size_t)word->text[0] * 3 + (size_t)word->text[word->length - 1]) % RECENT];
}

static const struct command *recall(const struct command *container, const struct word *word)
{
    const struct recent *recent = recent_of(word);
    bool found = recent != NULL && recent->length == word->length && recent->container == container &&
                 memcmp(recent->text, word->text, word->length) == 0;

    return found ? recent->command : NULL;
}

static void remember(const struct command *container, const struct word *word, const struct command *command)
{
    struct recent *recent = recent_of(word);

    if (recent == NULL || command == NULL) return;
    *recent = (struct recent){.container = container, .command = command, .length = word->length};
    memcpy(recent->text, word->text, word->length);
}

static void refuse_unmodelled(const char *name)
{
    char bounded[48];

    snprintf(bounded, sizeof(bounded), " %s ", name);
    if (strstr(unmodelled, bounded) != NULL) model_panic("the command", name, strlen(name));
}

static void unknown(const struct word *words, size_t n_words, struct out *out)
{
    char args[160];
    size_t used = 0;

    args[0] = '\0';
    for (size_t i = 1; i < n_words && used < 128; i++)
        used += (size_t)snprintf(args + used, sizeof(args) - used, "'%.*s' ",
                                 (int)(words[i].length < 128 - used ? words[i].length : 128 - used), words[i].text);
    out_error(out, "ERR unknown command '%.*s', with args beginning with: %s",
              words->length < 128 ? (int)words->length : 128, words->text, args);
}

static const struct command *find_sub(const struct command *container, const struct word *sub, struct out *out)
{
    char name[48];
    size_t used = strlen(container->name) + 1;
    const struct command *command = recall(container, sub);

    if (command != NULL) return command;
    memcpy(name, container->name, used - 1);
    name[used - 1] = '|';
    if (lower(sub, name + used, sizeof(name) - used - 2)) {
        command = find(name);
        if (command == NULL) refuse_unmodelled(name);
    }
    remember(container, sub, command);
    if (command != NULL) return command;
    snprintf(name, sizeof(name), "%s", container->name);
    for (char *p = name; *p != '\0'; p++) *p = (char)(*p - 'a' + 'A');
    out_error(out, "ERR unknown subcommand '%.*s'. Try %s HELP.", sub->length < 128 ? (int)sub->length : 128, sub->text,
              name);
    return NULL;
}

/* Later versions have it. */
static bool lacks(const struct model *model, const struct command *command)
{
    return command->run == run_msetex && model_version(model) < 0x080400 && model_valkey(model) < 0x090100;
}

const struct command *command_find(const struct model *model, const struct word *words, size_t n_words, struct out *out)
{
    const struct command *command = recall(NULL, words);
    char name[40];

    if (command == NULL && lower(words, name, sizeof(name))) {
        command = find(name);
        if (command == NULL) refuse_unmodelled(name);
        remember(NULL, words, command);
    }
    if (command == NULL || lacks(model, command)) {
        unknown(words, n_words, out);
        return NULL;
    }
    if ((command->flags & CONTAINER) != 0 && n_words > 1) return find_sub(command, &words[1], out);
    return command;
}

bool command_takes(const struct command *command, size_t n_words)
{
    return command->arity > 0 ? n_words == (size_t)command->arity : n_words >= (size_t)-command->arity;
}

/* "TIME SUBSCRIBE CLIENT|KILL": whole words in any case. */
static bool lists(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, " ");

        if (n == length && strncasecmp(at, name, n) == 0) return true;
        at += n + strspn(at + n, " ");
    }
    return false;
}

bool command_denied(const struct call *call)
{
    const struct model_manners *manners = &call->model->manners;

    if (call->session->operator||(call->command->flags & NO_AUTH) != 0) return false;
    if (manners->no_publish && call->command->run == run_publish) return true;
    if (manners->no_info_in_scripts && call->script != NULL && call->command->run == run_info) return true;
    return manners->denied != NULL && lists(manners->denied, call->command->name);
}

/* The text of the refusal; NULL: nothing forbids it. In the order of the server's own checks. */
static const char *state_refusal(const struct call *call)
{
    const struct model_manners *manners = &call->model->manners;
    const struct session *session = call->session;
    bool execs = call->command->run == run_exec;
    unsigned flags = call->command->flags | (execs ? session->queued_any & (WRITES | DENY_OOM) : 0);
    unsigned all = call->command->flags & (execs ? session->queued_all : ~0u);
    bool grows = (flags & DENY_OOM) != 0 || (session->multi && !execs && call->command->run != run_discard);

    if (manners->full && grows) return ERROR_OOM;
    if (manners->misconf && ((flags & WRITES) != 0 || call->command->run == run_ping)) return ERROR_MISCONF;
    if (manners->replica && (flags & WRITES) != 0) return ERROR_READONLY;
    if (session->subscriptions.count > 0 && !session->resp3 && (flags & IN_PUBSUB) == 0)
        return "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
               "this context";
    if (manners->replica && manners->master_down && (all & STALE) == 0) return ERROR_STALE;
    if (manners->loading && (all & LOADS) == 0) return "LOADING Redis is loading the dataset in memory";
    if (manners->busy && (call->command->flags & WHEN_BUSY) == 0)
        return "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
    return NULL;
}

static const char *refusal(const struct call *call)
{
    const struct session *session = call->session;

    if (!command_takes(call->command, call->n_words)) return "ERR wrong number of arguments for '%s' command";
    if (call->model->manners.password != NULL && !session->authed && (call->command->flags & NO_AUTH) == 0)
        return "NOAUTH Authentication required.";
    if (command_denied(call)) return "NOPERM this user has no permissions to run the '%s' command";
    return state_refusal(call);
}

/* A refused EXEC takes the transaction with it, any other command spoils it. "%s" in the text is the command. */
static void refuse(const struct call *call, const char *text)
{
    struct session *session = call->session;
    const char *gap = strstr(text, "%s"), *front = "";

    if (call->command->run == run_exec) {
        session_forget_queue(session);
        front = "EXECABORT Transaction discarded because of: ";
        if (strncmp(text, "ERR ", 4) == 0) text += 4;
    }
    session->dirty = session->multi;
    if (gap == NULL)
        out_error(call->out, "%s%s", front, text);
    else
        out_error(call->out, "%s%.*s%s%s", front, (int)(gap - text), text, call->command->name, gap + 2);
}

/* The command's words outlive what was received. */
static void queue(const struct call *call)
{
    struct queued *queued;
    size_t size = sizeof(*queued) + call->n_words * sizeof(struct word);
    char *at;

    out_status(call->out, "QUEUED");
    /* EXEC will fail. */
    if (call->session->dirty) return;
    for (size_t i = 0; i < call->n_words; i++) size += call->words[i].length;
    queued = model_resized(NULL, size);
    *queued = (struct queued){.command = call->command, .n_words = call->n_words};
    at = (char *)(queued->words + call->n_words);
    for (size_t i = 0; i < call->n_words; i++) {
        if (call->words[i].length != 0) memcpy(at, call->words[i].text, call->words[i].length);
        queued->words[i] = (struct word){at, call->words[i].length};
        at += call->words[i].length;
    }
    list_add(&call->session->queued, &queued->link);
    call->session->queued_any |= call->command->flags;
    call->session->queued_all &= call->command->flags;
}

void command_run(struct call *call)
{
    call->command->run(call);
    tracking_read(call);
}

static void execute(struct call *call)
{
    struct session *session = call->session;
    const char *why;

    call->command = command_find(session->model, call->words, call->n_words, call->out);
    if (call->command == NULL) {
        session->dirty = session->multi;
        return;
    }
    why = refusal(call);
    if (why != NULL)
        refuse(call, why);
    else if (session->multi && (call->command->flags & UNQUEUED) == 0)
        queue(call);
    else
        command_run(call);
}

void command_execute(struct session *session, const struct word *words, size_t n_words, struct out *out)
{
    struct call call = {.model = session->model, .session = session, .words = words, .n_words = n_words, .out = out};

    out->resp3 = session->resp3;
    execute(&call);
    /* CLIENT CACHING holds for the next command or transaction, and commands of CLIENT do not count. */
    if (!session->multi && (call.command == NULL || strncmp(call.command->name, "client|", 7) != 0))
        session->caching = false;
}
