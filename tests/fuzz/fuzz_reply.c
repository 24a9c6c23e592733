/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_reply.c - requests of every kind, built in both dialects, and a server's bytes judged as their answers
 *
 * The first bytes choose the pieces in which the bytes come and the requests; the rest is what the server says.
 * A command that is built is one whole command: as many words as it announces, and as many keys.
 */
#include "feed.h"
#include "redis/dialect/dialect.h"
#include "redis/wire/reply.h"

#define KEY_BYTES  24
#define WORDS_MAX  160
#define N_REQUESTS 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A request, its keys, and how it was built. */
struct asked {
    struct node_request request;
    struct node_key keys[NODE_KEYS_MAX];
    char texts[NODE_KEYS_MAX][KEY_BYTES];
    bool by_script;
    bool known; /* the server knows all scripts */
};

/* Every byte that a result points at can be read. */
static void touch(enum op op, const struct node_reply *reply)
{
    size_t sum = 0;
    if (reply->error != NULL) sum += strlen(reply->error);
    for (size_t i = 0; reply->holder != NULL && i < reply->holder_length; i++) sum += (unsigned char)reply->holder[i];
    CHECK(sum != SIZE_MAX);
    CHECK(reply->outcome <= OUTCOME_UNKNOWN && reply->fault < FAULTS);
    CHECK(reply->ttl_ms >= -2 && reply->quarantine_ms >= -1);
    CHECK(reply->outcome != OUTCOME_ERROR || reply->error != NULL);
    /* Only a quorum of certain answers makes a verdict: an acquire is never answered by "missing". */
    CHECK(op != OP_ACQUIRE || reply->outcome != OUTCOME_MISSING);
}

static void judge(const struct asked *asked, const struct dialect *dialect, const struct reply *reply)
{
    struct node_reply judged;
    char text[320] = "";
    dialect->judge(asked->request.op, asked->by_script, reply, &judged, text, sizeof(text));
    CHECK(strnlen(text, sizeof(text)) < sizeof(text));
    touch(asked->request.op, &judged);
}

/* ---- what is asked ---- */

static void choose_keys(struct feed *feed, struct asked *asked)
{
    static const uint8_t counts[8] = {1, 1, 1, 2, 3, 8, 33, NODE_KEYS_MAX};
    uint8_t shape = feed_byte(feed);
    size_t n = counts[shape & 7];
    for (size_t i = 0; i < n; i++) {
        size_t length = 0;
        const char *text = (shape & 8) != 0 && i == 0 ? feed_text(feed, KEY_BYTES, &length) : "";
        memcpy(asked->texts[i], text, length);
        /* Different ones, in their order. */
        if (length == 0)
            length = (size_t)snprintf(asked->texts[i], KEY_BYTES, "%s%02zu", (shape & 16) != 0 ? "{k}" : "k", i);
        asked->keys[i] = (struct node_key){.text = asked->texts[i], .length = length};
    }
    asked->request.keys = asked->keys;
    asked->request.n_keys = asked->request.op == OP_BREAK ? 1 : n;
}

static void choose_request(struct feed *feed, struct asked *asked)
{
    uint8_t what = feed_byte(feed), how = feed_byte(feed);
    struct node_request *request = &asked->request;
    memset(asked, 0, sizeof(*asked));
    request->op = (enum op)(what % (OP_BOOTSTRAP + 1));
    asked->known = (how & 1) == 0;
    request->explain = how & 2;
    request->silent = how & 4;
    request->fenced = how & 8;
    request->force = how & 16;
    request->lease_ms = (uint32_t)feed_number(feed);
    if ((how & 32) != 0) request->fence = feed_number(feed) >> 11;
    if ((how & 64) != 0) request->fence_ttl_ms = feed_number(feed);
    request->owner = "me:0123456789abcdef0123456789abcdef01234567";
    request->owner_length = strlen(request->owner);
    choose_keys(feed, asked);
}

/* Decimal digits up to the end of the line; what they say, and where the next line begins. */
static size_t read_count(const char **at, const char *end, char mark)
{
    size_t count = 0;
    CHECK(*at < end && **at == mark);
    for (++*at; *at < end && **at >= '0' && **at <= '9'; ++*at) count = count * 10 + (size_t)(**at - '0');
    CHECK(end - *at >= 2 && memcmp(*at, "\r\n", 2) == 0);
    *at += 2;
    return count;
}

/* One whole command; where it ends. */
static const char *check_command(const struct asked *asked, const char *at, const char *end)
{
    const char *words[3] = {"", "", ""};
    size_t lengths[3] = {0};
    size_t n = read_count(&at, end, '*');
    CHECK(n >= 1 && n <= WORDS_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t length = read_count(&at, end, '$');
        CHECK((size_t)(end - at) >= length + 2 && memcmp(at + length, "\r\n", 2) == 0);
        if (i < 3) words[i] = at;
        if (i < 3) lengths[i] = length;
        at += length + 2;
    }
    bool sha = lengths[0] == 7 && memcmp(words[0], "EVALSHA", 7) == 0;
    bool whole = lengths[0] == 4 && memcmp(words[0], "EVAL", 4) == 0;
    CHECK(!sha || (asked->known && asked->by_script));
    CHECK(asked->request.op > OP_RAISE || asked->by_script == (sha || whole));
    if (!sha && !whole) return at;
    CHECK(!sha || lengths[1] == DIALECT_SHA_LENGTH);
    size_t keys = strtoul(words[2], NULL, 10);
    CHECK(lengths[2] >= 1 && keys + 3 <= n);
    if (asked->request.op <= OP_RAISE) CHECK(keys >= asked->request.n_keys);
    return at;
}

/* About a lock it is one command, about the guard one or a few. */
static void check_commands(const struct asked *asked, const struct bytes *out)
{
    const char *at = out->data, *end = out->data + out->used;
    do at = check_command(asked, at, end);
    while (asked->request.op > OP_RAISE && at < end);
    CHECK(at == end);
}

static void build(const struct alloc *alloc, struct asked *asked, const struct dialect *dialect,
                  const struct guard *guard)
{
    uint32_t whole_sent = asked->known ? UINT32_MAX : 0;
    struct bytes out;
    char channel[KEY_BYTES + 64];
    bytes_init(&out, alloc, 262144);
    asked->by_script = dialect->build(&out, &asked->request, &whole_sent, guard);
    CHECK(out.fault == BYTES_FINE);
    check_commands(asked, &out);
    bytes_clear(&out);
    size_t length = dialect->channel(&asked->keys[0], asked->request.prefix, channel, sizeof(channel));
    CHECK(length > asked->keys[0].length && length <= sizeof(channel));
    CHECK(dialect->channel(&asked->keys[0], asked->request.prefix, channel, 1) <= 1);
}

/* A guard as a connection has it that looked at it. */
static void choose_guard(struct feed *feed, struct guard *guard)
{
    static const uint32_t modes[4] = {QUORLOCK_GUARD_OFF, QUORLOCK_GUARD_CONNECTION, QUORLOCK_GUARD_STRICT, 0};
    uint8_t shape = feed_byte(feed);
    guard_init(guard, modes[shape & 3], 3, (shape & 4) != 0 ? 60000 : 0, "s", false);
    guard_meet(guard, "run", "rep");
    if ((shape & 8) != 0) memcpy(guard->seen, "1|3|s|30000|run|rep|0", 22);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct asked asked[N_REQUESTS];
    static const struct dialect *const dialects[2] = {&dialect_plain, &dialect_redisson};
    struct feed feed = {data, size};
    struct alloc alloc;
    struct reply_parser parser;
    struct guard guard;
    const struct reply *reply = NULL;
    const char *why = NULL;
    if (size == 0) return 0;
    alloc_init(&alloc, NULL);
    uint8_t first = feed_byte(&feed);
    size_t piece = first != 0 ? first : REPLY_BYTES_MAX;
    choose_guard(&feed, &guard);
    for (size_t i = 0; i < N_REQUESTS; i++) {
        choose_request(&feed, &asked[i]);
        bool guarded = (first & 1) != 0 || asked[i].request.op > OP_RAISE;
        build(&alloc, &asked[i], dialects[i], guarded ? &guard : NULL);
    }
    reply_init(&parser, &alloc);
    reply_open(&parser);
    enum reply_result result = REPLY_NONE;
    while (feed.left != 0 && result == REPLY_NONE) {
        size_t length = feed.left < piece ? feed.left : piece;
        reply_feed(&parser, (const char *)feed.data, length);
        feed.data += length;
        feed.left -= length;
        while ((result = reply_next(&parser, &reply, &why)) == REPLY_READY)
            for (size_t i = 0; i < N_REQUESTS; i++) judge(&asked[i], dialects[i], reply);
        CHECK(result == REPLY_NONE || *why != '\0');
    }
    reply_clear(&parser);
    return 0;
}
