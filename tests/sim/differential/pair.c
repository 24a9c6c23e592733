/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "redis/wire/bytes.h"
#include "redis/wire/info.h"
#include "test.h"

#define START_US    INT64_C(1700000000000000)
#define ANSWER_SECS 20

struct server *pair_server(struct pair *pair)
{
    return &pair->cluster.servers[0];
}

/* ---- bytes ---- */

static void append(struct heard *heard, const void *bytes, size_t size)
{
    if (heard->bytes == NULL || heard->room - heard->used < size) {
        heard->room = 2 * (heard->used + size) + 4096;
        heard->bytes = realloc(heard->bytes, heard->room);
        assert_non_null(heard->bytes);
    }
    if (size != 0) memcpy(heard->bytes + heard->used, bytes, size);
    heard->used += size;
}

/* How long the first reply is; 0: it is not whole. */
static size_t reply_length(const char *bytes, size_t size)
{
    const char *line = memchr(bytes, '\n', size);
    size_t used;
    long long n;

    if (line == NULL) return 0;
    used = (size_t)(line - bytes) + 1;
    n = strtoll(bytes + 1, NULL, 10);
    if (strchr("$=", bytes[0]) != NULL && n >= 0) used += (size_t)n + 2;
    if (used > size) return 0;
    if (strchr("*>%", bytes[0]) == NULL) return used;
    if (bytes[0] == '%') n *= 2;
    for (long long i = 0; i < n; i++) {
        size_t more = used < size ? reply_length(bytes + used, size - used) : 0;

        if (more == 0) return 0;
        used += more;
    }
    return used;
}

static size_t count_replies(const struct heard *heard)
{
    size_t n = 0, used = 0, length;

    while (used < heard->used && (length = reply_length(heard->bytes + used, heard->used - used)) != 0) {
        used += length;
        n++;
    }
    return n;
}

/* Every id of one side becomes that of the other. */
static void map_ids(const struct pair *pair, char *bytes, size_t size, bool to_real)
{
    for (size_t i = 0; i < pair->n_ids; i++) {
        const char *from = to_real ? pair->ids[i].model : pair->ids[i].real;
        const char *to = to_real ? pair->ids[i].real : pair->ids[i].model;

        for (char *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), from, PAIR_ID)) != NULL; at += PAIR_ID)
            memcpy(at, to, PAIR_ID);
    }
}

/* Later servers say the same in other words: from a front to a back. */
static const struct {
    const char *front, *back, *model;
} other_texts[] = {
    {"ERR Command arguments must be strings or integers", "",
     "ERR Lua redis lib command arguments must be strings or integers"},
    {"ERR Please specify at least one argument for this call ", "",
     "ERR Please specify at least one argument for this redis lib call "},
    {"ERR Wrong number of args calling command from script", "",
     "ERR Wrong number of args calling Redis command from script"},
    {"ERR Unknown command called from script", "", "ERR Unknown Redis command called from script"},
    {"ERR This command is not allowed from script", "", "ERR This Redis command is not allowed from script"},
    {"ERR This Valkey command is not allowed from script", "", "ERR This Redis command is not allowed from script"},
    {"ERR ACL failure in script: ", "' command",
     "ERR The user executing the script can't run this command or subcommand"},
    {"NOSCRIPT No matching script.\r", "", "NOSCRIPT No matching script. Please use EVAL.\r"},
    {"ERR invalid numkeys value or out of range", "", "ERR invalid numkeys value"},
    {"NOPERM User default has", "", "NOPERM this user has"},
    {"HELLO <proto> AUTH <user>", "", "HELLO AUTH <user>"},
    {"BUSY Valkey is", "", "BUSY Redis is"},
    {"MISCONF Valkey is", "", "MISCONF Redis is"},
    {"check the Valkey logs", "", "check the Redis logs"},
    {"ERR Invalid command passed to server.acl_check_cmd()", "", "ERR Invalid command passed to redis.acl_check_cmd()"},
    {"9223372036854776000", "", "9.2233720368547758e+18"}, /* a score */
};

/* The bulk that this position is in, from its '$' on: scripts answer with such texts, too. NULL: it is in none. */
static char *bulk_at(const struct heard *heard, size_t at)
{
    size_t used = 0;

    while (used <= at) {
        char *bulk = heard->bytes + used, *line = memchr(bulk, '\n', heard->used - used);
        long long n = *bulk == '$' ? strtoll(bulk + 1, NULL, 10) : -1;

        if (line == NULL) return NULL;
        used = (size_t)(line - heard->bytes) + 1;
        if (n >= 0 && at >= used && at < used + (size_t)n) return bulk;
        if (n >= 0) used += (size_t)n + 2;
    }
    return NULL;
}

static void replace(struct heard *heard, size_t at, size_t n, const char *text)
{
    struct heard changed = {0};
    const char *bulk = bulk_at(heard, at);
    size_t kept = 0;

    if (bulk != NULL) {
        char *rest, line[32];
        size_t length = strtoull(bulk + 1, &rest, 10) - n + strlen(text);
        int written = snprintf(line, sizeof(line), "$%zu", length);

        append(&changed, heard->bytes, (size_t)(bulk - heard->bytes));
        append(&changed, line, (size_t)written);
        kept = (size_t)(rest - heard->bytes);
    }
    append(&changed, heard->bytes + kept, at - kept);
    append(&changed, text, strlen(text));
    append(&changed, heard->bytes + at + n, heard->used - at - n);
    free(heard->bytes);
    *heard = changed;
}

static void map_texts(struct heard *heard)
{
    for (size_t i = 0; i < LENGTH(other_texts); i++) {
        const char *front = other_texts[i].front, *back = other_texts[i].back, *model = other_texts[i].model;
        size_t at = 0;

        for (;;) {
            char *found = memmem(heard->bytes + at, heard->used - at, front, strlen(front));
            char *rest = found != NULL ? found + strlen(front) : NULL;
            char *end =
                rest != NULL ? memmem(rest, heard->used - (size_t)(rest - heard->bytes), back, strlen(back)) : NULL;

            if (end == NULL) break;
            at = (size_t)(found - heard->bytes);
            replace(heard, at, (size_t)(end - found) + strlen(back), model);
            at += strlen(model);
        }
    }
}

/* Valkey 9.1 leaves the script's sha out of the errors of scripts. */
static void drop_shas(struct heard *heard)
{
    static const char front[] = " script: ", back[] = ", on @";
    const size_t shown = sizeof(front) - 1 + 40;

    for (size_t at = 0; at + shown + sizeof(back) <= heard->used; at++) {
        const char *text = heard->bytes + at;

        if (memcmp(text, front, sizeof(front) - 1) == 0 && memcmp(text + shown, back, sizeof(back) - 1) == 0)
            replace(heard, at, shown + sizeof(back) - 1, " script: on @");
    }
}

static void cut(struct heard *heard, size_t from, size_t to)
{
    memmove(heard->bytes + from, heard->bytes + to, heard->used - to);
    heard->used -= to - from;
}

/* HELLO tells the connection's number, and of later servers other names and modules. */
static void drop_hello(struct heard *heard, bool whole)
{
    static const char first[] = "$6\r\nserver\r\n", id[] = "$2\r\nid\r\n", last[] = "$7\r\nmodules\r\n";
    const char *front = whole ? first : id, *back = whole ? last : id;

    for (size_t at = 0; at < heard->used;) {
        char *from = memmem(heard->bytes + at, heard->used - at, front, strlen(front)), *to;

        if (from == NULL) return;
        at = (size_t)(from - heard->bytes);
        to = memmem(from, heard->used - at, back, strlen(back));
        if (to == NULL) return;
        to += strlen(back);
        to += reply_length(to, heard->used - (size_t)(to - heard->bytes));
        cut(heard, at, (size_t)(to - heard->bytes));
    }
}

/* ---- the model's side ---- */

static void on_write(void *arg, const void *bytes, size_t size)
{
    struct pair_conn *conn = arg;

    append(&conn->model, bytes, size);
}

static void on_hang_up(void *arg)
{
    struct pair_conn *conn = arg;

    conn->hung_up = true;
}

/* ---- the real side ---- */

static int dial(struct pair *pair)
{
    /* What a wrong model waits for may never come. */
    const struct timeval limit = {.tv_sec = pair->wrong == RIGHT ? ANSWER_SECS : 0, .tv_usec = 200000};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", pair_server(pair)->unix_address + strlen("unix://"));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        fail_msg("%s: %s", address.sun_path, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return fd;
}

/* So many replies, or until the end. */
static void hear(struct pair_conn *conn, size_t n_replies, bool to_end)
{
    char bytes[65536];

    while (to_end || count_replies(&conn->real) < n_replies) {
        ssize_t n = recv(conn->fd, bytes, sizeof(bytes), 0);

        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        append(&conn->real, bytes, (size_t)n);
    }
}

static void say(struct pair *pair, int fd, const char *bytes, size_t size)
{
    char *mapped = malloc(size);

    assert_non_null(mapped);
    memcpy(mapped, bytes, size);
    map_ids(pair, mapped, size, true);
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(fd, mapped + sent, size - sent, MSG_NOSIGNAL);

        if (n <= 0) break;
        sent += (size_t)n;
    }
    free(mapped);
}

/* ---- both ---- */

static void put(char *ret, size_t size, const char *bytes, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length && used + 5 < size; i++) {
        unsigned char byte = (unsigned char)bytes[i];

        if (byte == '\r') continue;
        used += (size_t)snprintf(ret + used, size - used,
                                 isprint(byte) != 0 ? "%c"
                                 : byte == '\n'     ? " | "
                                                    : "\\x%02x",
                                 byte);
    }
    ret[used] = '\0';
}

/* Commands as words between bars; scripts are cut. */
static void put_words(char *ret, size_t size, const char *bytes, size_t length)
{
    const char *at = bytes, *end = bytes + length;
    size_t used = 0;

    ret[0] = '\0';
    while (at < end && used + 256 < size) {
        char kind = *at;
        size_t n = (size_t)strtoull(at + 1, NULL, 10);

        at = memchr(at, '\n', (size_t)(end - at));
        if (at == NULL) return;
        at++;
        if (kind != '$') continue;
        if (at + n > end) return;
        put(ret + used, size - used - 4, at, n < 200 ? n : 60);
        used += strlen(ret + used);
        used += (size_t)snprintf(ret + used, size - used, "%s|", n < 200 ? "" : "...");
        at += n + 2;
    }
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The same lines, in any order: UNSUBSCRIBE from all channels is in the order of the server's own table. */
static bool same_lines(const struct heard *a, const struct heard *b)
{
    char *lines[2][512], *copies[2];
    size_t n[2] = {0, 0};
    bool same = a->used == b->used && memchr(a->bytes, '\0', a->used) == NULL;

    for (size_t i = 0; i < 2; i++) {
        const struct heard *heard = i == 0 ? a : b;
        char *rest = copies[i] = strndup(heard->bytes, heard->used);

        while (n[i] < LENGTH(lines[i]) && (lines[i][n[i]] = strsep(&rest, "\n")) != NULL) n[i]++;
        qsort(lines[i], n[i], sizeof(lines[i][0]), compare_lines);
    }
    for (size_t i = 0; same && i < n[0]; i++) same = n[0] == n[1] && strcmp(lines[0][i], lines[1][i]) == 0;
    free(copies[0]);
    free(copies[1]);
    return same;
}

static bool has_word(const struct heard *heard, const char *word)
{
    return heard->used != 0 && memmem(heard->bytes, heard->used, word, strlen(word)) != NULL;
}

/* The same bytes. Of a client that is killed one side may have said less: what a server has not sent yet is lost, and
 * it goes on with a transaction that killed its own client, and may write parts of replies then. */
static bool equal(const struct pair_conn *conn)
{
    size_t model = conn->model.used, real = conn->real.used, least = model < real ? model : real;

    if (model != real && !conn->hung_up) return false;
    return least == 0 || memcmp(conn->model.bytes, conn->real.bytes, least) == 0;
}

static bool begins(const struct heard *heard, const char *text)
{
    return heard->used >= strlen(text) && memcmp(heard->bytes, text, strlen(text)) == 0;
}

/* Valkey 9.1 refuses a stranger before it looks for faults of the command. */
static bool both_refuse(const struct pair_conn *conn)
{
    return begins(&conn->model, "-ERR ") && begins(&conn->real, "-NOAUTH ");
}

static bool compare(struct pair *pair, size_t index, const char *bytes, size_t size)
{
    struct pair_conn *conn = &pair->conns[index];
    char asked[PAIR_TEXT_MAX], model[PAIR_TEXT_MAX], real[PAIR_TEXT_MAX];

    if (conn->real.used != 0) map_ids(pair, conn->real.bytes, conn->real.used, false);
    if (conn->real.used != 0 && !pair->real_is_7_0) map_texts(&conn->real);
    if (has_word(&conn->real, " script: on @")) drop_shas(&conn->model);
    if (conn->model.used != 0 && conn->real.used != 0) {
        drop_hello(&conn->model, !pair->real_is_7_0);
        drop_hello(&conn->real, !pair->real_is_7_0);
    }
    if (equal(conn) || (!pair->real_is_7_0 && both_refuse(conn))) return true;
    if (has_word(&conn->model, "unsubscribe") && same_lines(&conn->model, &conn->real)) return true;
    put_words(asked, sizeof(asked), bytes, size);
    put(model, sizeof(model), conn->model.bytes, conn->model.used);
    put(real, sizeof(real), conn->real.bytes, conn->real.used);
    snprintf(pair->difference, sizeof(pair->difference),
             "connection %zu, asked: %s\n  the model says: %s\n  the server says: %s", index, asked, model, real);
    return false;
}

/* A model that is not right. */
static void spoil(struct pair *pair)
{
    static const char push[] = ">2\r\n$10\r\ninvalidate\r\n";
    static const char *const flush[] = {"SCRIPT", "FLUSH"}, *const del[] = {"DEL", "a"};

    if (pair->wrong == WRONG_MEMORY) (void)model_do(pair->model, pair->wall_us, del, 2);
    if (pair->wrong == WRONG_SCRIPTS) (void)model_do(pair->model, pair->wall_us, flush, 2);
    for (size_t i = 0; pair->wrong == WRONG_NOTICES && i < PAIR_CONNS; i++) {
        struct heard *heard = &pair->conns[i].model;

        if (heard->used > 18 && memcmp(heard->bytes, "*3\r\n$7\r\nmessage\r\n", 17) == 0) heard->used = 0;
    }
    for (size_t i = 0; pair->wrong == WRONG_PUSHES && i < PAIR_CONNS; i++) {
        struct heard *heard = &pair->conns[i].model;

        if (begins(heard, push)) heard->used = 0;
    }
}

bool pair_ask(struct pair *pair, size_t index, const char *bytes, size_t size)
{
    uint64_t model_us = pair->wall_us + (pair->wrong == WRONG_CLOCK ? 1000 : 0);
    struct pair_conn *asked = &pair->conns[index];
    bool same = true;

    model_feed(asked->session, bytes, size);
    while (model_step(asked->session, model_us)) continue;
    if (pair->wrong != RIGHT) spoil(pair);
    say(pair, asked->fd, bytes, size);
    /* First who asked: then all is executed. */
    for (size_t i = 0; i < PAIR_CONNS; i++) {
        size_t at = (index + i) % PAIR_CONNS;
        struct pair_conn *conn = &pair->conns[at];

        if (conn->model.used != 0 || conn->hung_up) hear(conn, count_replies(&conn->model), conn->hung_up);
        same = same && compare(pair, at, bytes, size);
        conn->model.used = conn->real.used = 0;
        if (conn->hung_up) pair_reconnect(pair, at);
    }
    return same;
}

void pair_reconnect(struct pair *pair, size_t index)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct pair_conn *conn = &pair->conns[index];

    if (conn->session != NULL) model_close(conn->session);
    if (conn->fd >= 0) close(conn->fd);
    conn->hung_up = false;
    conn->model.used = conn->real.used = 0;
    conn->session = model_open(pair->model, on_write, on_hang_up, conn);
    conn->fd = dial(pair);
    /* A connection counts only when the server has taken it. */
    say(pair, conn->fd, ping, sizeof(ping) - 1);
    hear(conn, 1, false);
    conn->real.used = 0;
}

bool pair_refused(struct pair *pair, size_t index)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct pair_conn *conn = &pair->conns[index];
    bool same;

    model_close(conn->session);
    close(conn->fd);
    conn->model.used = conn->real.used = 0;
    conn->session = model_open(pair->model, on_write, on_hang_up, conn);
    conn->fd = dial(pair);
    model_feed(conn->session, ping, sizeof(ping) - 1);
    while (model_step(conn->session, pair->wall_us)) continue;
    hear(conn, 0, true);
    same = compare(pair, index, ping, sizeof(ping) - 1) && conn->hung_up;
    conn->model.used = conn->real.used = 0;
    return same;
}

static void tell(struct pair *pair, int fd, const char *const *words)
{
    struct bytes bytes;

    bytes_init(&bytes, &memory, 4096);
    bytes_texts(&bytes, words);
    say(pair, fd, bytes.data, bytes.used);
    bytes_clear(&bytes);
}

void pair_tell(struct pair *pair, size_t index, const char *const *words)
{
    struct pair_conn *conn = &pair->conns[index];

    tell(pair, conn->fd, words);
    hear(conn, 1, false);
    if (conn->real.used == 0 || conn->real.bytes[0] == '-') fail_msg("the server refuses %s", words[0]);
    conn->real.used = 0;
}

void pair_block(struct pair *pair)
{
    const char *const endless[] = {"EVAL", "while true do end", "0", NULL}, *const ping[] = {"PING", NULL};
    struct pair_conn probe = {.fd = dial(pair)};
    bool busy = false;

    server_do(pair_server(pair), "CONFIG SET busy-reply-threshold 1");
    pair->blocker = dial(pair);
    tell(pair, pair->blocker, endless);
    while (!busy) {
        tell(pair, probe.fd, ping);
        hear(&probe, 1, false);
        assert_true(probe.real.used > 0);
        busy = probe.real.bytes[0] == '-';
        probe.real.used = 0;
    }
    free(probe.real.bytes);
    close(probe.fd);
}

void pair_unblock(struct pair *pair)
{
    struct pair_conn blocker = {.fd = pair->blocker};

    server_do(pair_server(pair), "SCRIPT KILL");
    hear(&blocker, 1, false);
    assert_true(blocker.real.used > 0);
    free(blocker.real.bytes);
    close(blocker.fd);
}

void pair_advance(struct pair *pair, uint64_t by_us)
{
    pair->wall_us += by_us;
    *pair->clock_us = (int64_t)pair->wall_us;
}

/* ---- ids ---- */

static void real_info(struct pair *pair, const char *section, char *ret, size_t size)
{
    const struct server *server = pair_server(pair);
    redisContext *context = redisConnect("127.0.0.1", server->port);
    redisReply *reply;

    if (server->password != NULL) freeReplyObject(redisCommand(context, "AUTH %s", server->password));
    reply = redisCommand(context, "INFO %s", section);

    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    snprintf(ret, size, "%s", reply->str);
    freeReplyObject(reply);
    redisFree(context);
}

void pair_info_text(struct pair *pair, bool real, const char *section, char *ret, size_t size)
{
    const char *const words[] = {"INFO", section};

    if (real)
        real_info(pair, section, ret, size);
    else
        snprintf(ret, size, "%s", model_do(pair->model, pair->wall_us, words, 2));
}

void pair_info(struct pair *pair, bool real, const char *section, const char *field, char *ret, size_t size)
{
    char text[PAIR_INFO_MAX];

    pair_info_text(pair, real, section, text, sizeof(text));
    if (!info_field(text, strlen(text), field, ret, size)) fail_msg("INFO %s tells no %s", section, field);
}

static void learn(struct pair *pair, const char *section, const char *field, uint64_t *number)
{
    char real[PAIR_ID + 1], model[PAIR_ID + 1];

    pair_info(pair, true, section, field, real, sizeof(real));
    for (size_t i = 0; i < pair->n_ids; i++) {
        if (strcmp(pair->ids[i].real, real) == 0) return;
    }
    assert_true(pair->n_ids < PAIR_IDS_MAX);
    ++*number;
    pair_info(pair, false, section, field, model, sizeof(model));
    memcpy(pair->ids[pair->n_ids].real, real, sizeof(real));
    memcpy(pair->ids[pair->n_ids].model, model, sizeof(model));
    pair->n_ids++;
}

void pair_learn_ids(struct pair *pair)
{
    struct model_manners *manners = model_manners(pair->model);
    char input[PAIR_ID + 1];

    learn(pair, "server", "run_id", &manners->run);
    learn(pair, "replication", "master_replid", &manners->replid);
    /* Scripts only ask whether there was any. */
    pair_info(pair, true, "stats", "total_net_repl_input_bytes", input, sizeof(input));
    manners->repl_input = input[strspn(input, "0")] != '\0';
}

/* ---- life ---- */

/* What has expired is found by commands only: in the background it would be gone, and told, at any time. */
static void forbid_expiry(struct pair *pair)
{
    struct server *server = pair_server(pair);

    pair_info(pair, true, "server", "redis_version", pair->version, sizeof(pair->version));
    if (strtoul(pair->version, NULL, 10) >= 7) {
        server->more = "enable-debug-command local";
        server_restart(server);
    }
    server_do(server, "DEBUG SET-ACTIVE-EXPIRE 0");
}

static void start_clock(struct pair *pair)
{
    char path[TEXT_SIZE + 16];
    int fd;

    snprintf(path, sizeof(path), "/tmp/quorlock-clock-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0 && ftruncate(fd, sizeof(*pair->clock_us)) == 0);
    pair->clock_us = mmap(NULL, sizeof(*pair->clock_us), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(pair->clock_us != MAP_FAILED);
    close(fd);
    pair->wall_us = (uint64_t)START_US;
    *pair->clock_us = START_US;
    setenv("QUORLOCK_CHAOS_CLOCK", path, 1);
    setenv("QUORLOCK_CHAOS_CLOCK_STANDS", "1", 1);
    setenv("LD_PRELOAD", QUORLOCK_CLOCK_SHIM, 1);
    cluster_start(&pair->cluster, 1);
    forbid_expiry(pair);
    unsetenv("LD_PRELOAD");
    unsetenv("QUORLOCK_CHAOS_CLOCK_STANDS");
    unsetenv("QUORLOCK_CHAOS_CLOCK");
    unlink(path);
}

void pair_open(struct pair *pair, enum pair_wrong wrong)
{
    struct model_manners manners = {.version = pair->version};
    char text[PAIR_INFO_MAX];

    *pair = (struct pair){.wrong = wrong};
    for (size_t i = 0; i < PAIR_CONNS; i++) pair->conns[i].fd = -1;
    start_clock(pair);
    server_do(pair_server(pair), "CONFIG SET appendonly no");
    pair_info_text(pair, true, "server", text, sizeof(text));
    if (info_field(text, strlen(text), "valkey_version", pair->valkey, sizeof(pair->valkey)))
        manners.valkey = pair->valkey;
    pair->model = model_new();
    model_start(pair->model, &manners, true, NULL);
    pair_learn_ids(pair);
    pair->real_is_7_0 = strncmp(pair->version, "7.0.", 4) == 0;
    for (size_t i = 0; i < PAIR_CONNS; i++) pair_reconnect(pair, i);
}

void pair_close(struct pair *pair)
{
    for (size_t i = 0; i < PAIR_CONNS; i++) {
        if (pair->conns[i].fd >= 0) close(pair->conns[i].fd);
        free(pair->conns[i].model.bytes);
        free(pair->conns[i].real.bytes);
    }
    model_free(pair->model);
    if (pair->clock_us != NULL) munmap(pair->clock_us, sizeof(*pair->clock_us));
    cluster_end(&pair->cluster);
}
