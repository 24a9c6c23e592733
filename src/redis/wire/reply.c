/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/wire/reply.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <string.h>

#include "redis/wire/errors.h"

#define REPLY_TEXT_FIRST 512
#define DIGITS_MAX       18

/* hiredis 0.14 counts in int. 1.x has the types of RESP3, which we never ask for and refuse. */
#if defined(HIREDIS_MAJOR) && HIREDIS_MAJOR >= 1
typedef size_t reply_count;
#define REPLY_RESP3 1
#else
typedef int reply_count;
#define REPLY_RESP3 0
#endif

bool reply_begins(const struct reply_item *item, const char *front)
{
    size_t n = strlen(front);

    return item->length >= n && memcmp(item->text, front, n) == 0;
}

bool reply_is(const struct reply_item *item, const char *word)
{
    return item->length == strlen(word) && reply_begins(item, word);
}

bool reply_fits(const struct reply *reply, const char *types)
{
    if (reply->self.type != REPLY_ARRAY || reply->n_elements != strlen(types)) return false;
    for (size_t i = 0; i < reply->n_elements; i++) {
        enum reply_type type = reply->elements[i].type;
        enum reply_type wanted = types[i] == 'i' ? REPLY_INTEGER : REPLY_STRING;

        if (type != wanted && !(types[i] == 'n' && type == REPLY_NIL)) return false;
    }
    return true;
}

static void *reply_refuse(struct reply_parser *parser, const char *fault)
{
    if (parser->fault == NULL) parser->fault = fault;
    return NULL;
}

/* Return the place for a new value: the reply itself, or an element of its array. NULL makes hiredis stop. */
static struct reply_item *place(const redisReadTask *task, enum reply_type type)
{
    struct reply_parser *parser = task->privdata;
    struct reply_item *item = &parser->reply.self;
    size_t index = (size_t)task->idx; /* an int before hiredis 1.0; never negative */

    if (task->parent != NULL) {
        if (task->parent->parent != NULL) return reply_refuse(parser, "a reply nested too deep");
        if (index >= REPLY_ELEMENTS_MAX) return reply_refuse(parser, "an array of too many elements");
        item = &parser->reply.elements[index];
    } else {
        parser->text_used = 0;
        parser->reply.n_elements = 0;
    }
    *item = (struct reply_item){.type = type};
    return item;
}

static bool reply_reserve(struct reply_parser *parser, size_t length)
{
    size_t needed = parser->text_used + length + 1;
    size_t capacity = parser->text_capacity != 0 ? parser->text_capacity : REPLY_TEXT_FIRST;
    char *text;

    if (needed <= parser->text_capacity) return true;
    while (capacity < needed) capacity *= 2;
    text = alloc_resize(parser->alloc, parser->text, capacity);
    if (text == NULL) {
        parser->nomem = true;
        return false;
    }
    parser->text = text;
    parser->text_capacity = capacity;
    return true;
}

static void *on_string(const redisReadTask *task, char *text, size_t length)
{
    struct reply_parser *parser = task->privdata;
    struct reply_item *item;
    enum reply_type type;

    switch (task->type) {
    case REDIS_REPLY_STRING: type = REPLY_STRING; break;
    case REDIS_REPLY_STATUS: type = REPLY_STATUS; break;
    case REDIS_REPLY_ERROR: type = REPLY_ERROR; break;
    default: return reply_refuse(parser, "a value of a kind that was not asked for");
    }
    item = place(task, type);
    if (item == NULL) return NULL;
    if (length > REPLY_BYTES_MAX) return reply_refuse(parser, "a reply too large");
    if (!reply_reserve(parser, length)) return NULL;
    item->offset = parser->text_used;
    item->length = length;
    memcpy(parser->text + item->offset, text, length);
    parser->text[item->offset + length] = '\0';
    parser->text_used += length + 1;
    return item;
}

static void *reply_on_array(const redisReadTask *task, reply_count count)
{
    struct reply_parser *parser = task->privdata;
    struct reply_item *item;

    if (task->type != REDIS_REPLY_ARRAY) return reply_refuse(parser, "a push or map that was not asked for");
    if (task->parent != NULL) return reply_refuse(parser, "a reply nested too deep");
    if ((unsigned long long)count > REPLY_ELEMENTS_MAX) return reply_refuse(parser, "an array of too many elements");
    item = place(task, REPLY_ARRAY);
    if (item != NULL) parser->reply.n_elements = (size_t)count;
    return item;
}

static void *on_integer(const redisReadTask *task, long long number)
{
    struct reply_item *item = place(task, REPLY_INTEGER);

    if (item != NULL) item->integer = number;
    return item;
}

static void *on_nil(const redisReadTask *task)
{
    return place(task, REPLY_NIL);
}

#if REPLY_RESP3
static void *on_double(const redisReadTask *task, double number, char *text, size_t length)
{
    (void)number;
    (void)text;
    (void)length;
    return reply_refuse(task->privdata, "a value of a kind that was not asked for");
}

static void *on_bool(const redisReadTask *task, int truth)
{
    (void)truth;
    return reply_refuse(task->privdata, "a value of a kind that was not asked for");
}
#endif

/* Values are stored in the parser, so nothing is freed. */
static void on_free(void *item)
{
    (void)item;
}

/* hiredis wants it without const, but does not write to it. */
static redisReplyObjectFunctions reply_functions = {
    .createString = on_string,
    .createArray = reply_on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
#if REPLY_RESP3
    .createDouble = on_double,
    .createBool = on_bool,
#endif
    .freeObject = on_free,
};

void reply_init(struct reply_parser *parser, const struct alloc *alloc)
{
    *parser = (struct reply_parser){.alloc = alloc};
}

bool reply_open(struct reply_parser *parser)
{
    if (parser->reader != NULL) redisReaderFree(parser->reader);
    parser->reader = redisReaderCreateWithFunctions(&reply_functions);
    parser->n_ahead = parser->same = 0;
    parser->pending = 0;
    parser->nomem = false;
    parser->fault = NULL;
    if (parser->reader == NULL) return false;
    parser->reader->privdata = parser;
    return true;
}

void reply_clear(struct reply_parser *parser)
{
    if (parser->reader != NULL) redisReaderFree(parser->reader);
    alloc_free(parser->alloc, parser->text);
    reply_init(parser, parser->alloc);
}

bool reply_is_drained(const struct reply_parser *parser)
{
    return parser->n_ahead == 0 && parser->pending == 0;
}

static void reply_pass_on(struct reply_parser *parser)
{
    if (parser->n_ahead == 0) return;
    parser->pending += parser->n_ahead;
    if (redisReaderFeed(parser->reader, parser->ahead, parser->n_ahead) != REDIS_OK) parser->nomem = true;
    parser->n_ahead = 0;
}

void reply_feed(struct reply_parser *parser, const char *data, size_t length)
{
    assert(parser->reader != NULL);
    assert(length <= REPLY_BYTES_MAX);
    reply_pass_on(parser);
    parser->ahead = data;
    parser->n_ahead = length;
    parser->same = 0;
}

/* Read ":1\r\n" and the like, with so few digits that nothing can overflow. Return its length; 0: something else, or
 * not whole. */
static size_t read_integer(const char *at, size_t n, int64_t *ret)
{
    int64_t number = 0;
    size_t i = 1;

    for (; i < n && i <= DIGITS_MAX && at[i] >= '0' && at[i] <= '9'; i++) number = number * 10 + (at[i] - '0');
    if (i == 1 || i + 1 >= n || at[i] != '\r' || at[i + 1] != '\n') return 0;
    *ret = number;
    return i + 2;
}

/* Read "*2\r\n:1\r\n:5\r\n" and the like: the reply to extend, to raise, and to acquire by script. Return its length;
 * 0: something else, or not whole. */
static size_t read_integers(const char *at, size_t n, struct reply *reply)
{
    size_t used = 4, count = n > used ? (size_t)(at[1] - '0') : 0;

    if (count == 0 || count > REPLY_ELEMENTS_MAX || at[2] != '\r' || at[3] != '\n') return 0;
    for (size_t i = 0; i < count; i++) {
        struct reply_item *item = &reply->elements[i];
        size_t length;

        *item = (struct reply_item){.type = REPLY_INTEGER};
        length = used < n && at[used] == ':' ? read_integer(at + used, n - used, &item->integer) : 0;
        if (length == 0) return 0;
        used += length;
    }
    reply->n_elements = count;
    return used;
}

static void take_ahead(struct reply_parser *parser, size_t length)
{
    parser->ahead += length;
    parser->n_ahead -= length;
    parser->same = length;
}

/* The replies in a batch are mostly equal: one that repeats the reply before is not parsed again. */
static bool is_same_again(struct reply_parser *parser)
{
    size_t same = parser->same;

    if (same == 0 || parser->n_ahead < same || memcmp(parser->ahead, parser->ahead - same, same) != 0) return false;
    take_ahead(parser, same);
    return true;
}

/* Read the next reply if it is whole and one that SET, release or extend usually get. */
static bool next_is_plain(struct reply_parser *parser)
{
    static const char ok[] = "+OK\r\n", nil[] = "$-1\r\n";
    const char *at = parser->ahead;
    size_t n = parser->n_ahead, length = 0;
    struct reply *reply = &parser->reply;

    if (n == 0 || parser->pending != 0) return false;
    if (is_same_again(parser)) return true;
    reply->n_elements = 0;
    if (n >= sizeof(ok) - 1 && memcmp(at, ok, sizeof(ok) - 1) == 0) {
        length = sizeof(ok) - 1;
        reply->self = (struct reply_item){.type = REPLY_STATUS, .text = "OK", .length = 2};
    } else if (n >= sizeof(nil) - 1 && memcmp(at, nil, sizeof(nil) - 1) == 0) {
        length = sizeof(nil) - 1;
        reply->self = (struct reply_item){.type = REPLY_NIL};
    } else if (*at == ':') {
        reply->self = (struct reply_item){.type = REPLY_INTEGER};
        length = read_integer(at, n, &reply->self.integer);
    } else if (*at == '*') {
        reply->self = (struct reply_item){.type = REPLY_ARRAY};
        length = read_integers(at, n, reply);
    }
    take_ahead(parser, length);
    return length > 0;
}

/*
 * hiredis waits for as many bytes as a string's header announces. A header that announces more than we would take is
 * refused at once, not when a deadline ends the wait. Only such a header can leave a whole line of digits at the
 * reader's position.
 */
static bool claims_too_much(const redisReader *reader)
{
    uint64_t claim = 0;
    size_t i = reader->pos;

    for (; i < reader->len && reader->buf[i] >= '0' && reader->buf[i] <= '9'; i++)
        if (claim <= REPLY_BYTES_MAX) claim = claim * 10 + (uint64_t)(reader->buf[i] - '0');
    return claim > REPLY_BYTES_MAX && i + 1 < reader->len && reader->buf[i] == '\r' && reader->buf[i + 1] == '\n';
}

static enum reply_result bad(struct reply_parser *parser, const char **ret_why)
{
    const char *reason = parser->fault != NULL ? parser->fault : parser->reader->errstr;

    *ret_why = error_printable(parser->why, sizeof(parser->why), reason, strlen(reason));
    return REPLY_BAD;
}

static void reply_settle(struct reply_parser *parser)
{
    struct reply *reply = &parser->reply;

    reply->self.text = parser->text != NULL ? parser->text + reply->self.offset : NULL;
    for (size_t i = 0; i < reply->n_elements; i++)
        reply->elements[i].text = parser->text != NULL ? parser->text + reply->elements[i].offset : NULL;
}

enum reply_result reply_next(struct reply_parser *parser, const struct reply **ret, const char **ret_why)
{
    void *object = NULL;
    int result;

    *ret_why = "out of memory";
    if (parser->nomem) return REPLY_NOMEM;
    if (next_is_plain(parser)) {
        *ret = &parser->reply;
        return REPLY_READY;
    }
    reply_pass_on(parser);
    if (parser->nomem) return REPLY_NOMEM;
    result = redisReaderGetReply(parser->reader, &object);
    if (parser->nomem) return REPLY_NOMEM;
    if (result != REDIS_OK) {
        if (parser->fault == NULL && parser->reader->err == REDIS_ERR_OOM) return REPLY_NOMEM;
        return bad(parser, ret_why);
    }
    if (object == NULL) {
        if (claims_too_much(parser->reader) || parser->pending > REPLY_BYTES_MAX) {
            reply_refuse(parser, "a reply too large");
            return bad(parser, ret_why);
        }
        return REPLY_NONE;
    }
    parser->pending = parser->reader->len - parser->reader->pos;
    reply_settle(parser);
    *ret = &parser->reply;
    return REPLY_READY;
}
