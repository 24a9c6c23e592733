/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/wire/reply.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "redis/wire/errors.h"

#define REPLY_BUFFER_FIRST 512
#define DIGITS_MAX         18

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

void reply_init(struct reply_parser *parser, const struct alloc *alloc)
{
    *parser = (struct reply_parser){.alloc = alloc};
}

void reply_open(struct reply_parser *parser)
{
    parser->n_ahead = parser->same = 0;
    parser->done = (struct reply_progress){0};
    parser->nomem = false;
    parser->fault = NULL;
}

void reply_clear(struct reply_parser *parser)
{
    alloc_free(parser->alloc, parser->kept.bytes);
    alloc_free(parser->alloc, parser->text.bytes);
    reply_init(parser, parser->alloc);
}

bool reply_is_drained(const struct reply_parser *parser)
{
    return parser->n_ahead == 0;
}

/* Make room for so many bytes; false: out of memory, from now on. */
static bool reply_reserve(struct reply_parser *parser, struct reply_buffer *buffer, size_t size)
{
    size_t room = buffer->room != 0 ? buffer->room : REPLY_BUFFER_FIRST;
    char *bytes;

    if (size <= buffer->room) return true;
    while (room < size) room *= 2;
    bytes = alloc_resize(parser->alloc, buffer->bytes, room);
    if (bytes == NULL) {
        parser->nomem = true;
        return false;
    }
    *buffer = (struct reply_buffer){.bytes = bytes, .room = room};
    return true;
}

void reply_keep_room(struct reply_parser *parser, size_t texts, size_t piece)
{
    (void)reply_reserve(parser, &parser->text, texts);
    (void)reply_reserve(parser, &parser->kept, texts + piece);
    parser->nomem = false;
}

/* Copy the bytes that are no whole reply yet, with room for more behind them. */
static void keep_rest(struct reply_parser *parser, size_t more)
{
    /* The buffer may move: then the place in it counts. */
    size_t at = parser->inside ? (size_t)(parser->ahead - parser->kept.bytes) : 0;

    if (!reply_reserve(parser, &parser->kept, parser->n_ahead + more)) return;
    if (parser->n_ahead > 0)
        memmove(parser->kept.bytes, parser->inside ? parser->kept.bytes + at : parser->ahead, parser->n_ahead);
    parser->ahead = parser->kept.bytes;
    parser->inside = true;
    parser->same = 0;
}

void reply_feed(struct reply_parser *parser, const char *data, size_t length)
{
    assert(length <= REPLY_BYTES_MAX);
    parser->same = 0;
    if (parser->n_ahead == 0) {
        parser->ahead = data;
        parser->n_ahead = length;
        parser->inside = false;
        return;
    }
    keep_rest(parser, length);
    if (parser->nomem) return;
    memcpy(parser->kept.bytes + parser->n_ahead, data, length);
    parser->n_ahead += length;
}

/* ---- the replies that most requests get ---- */

/* Read ":1\r\n" and the like, with so few digits that nothing can overflow. Return its length; 0: something else, or
 * not whole. */
static size_t read_integer(const char *at, size_t n, int64_t *ret)
{
    int64_t number = 0;
    size_t i = 1;

    for (; i < n && i <= DIGITS_MAX && at[i] >= '0' && at[i] <= '9'; i++) number = number * 10 + (at[i] - '0');
    if (i == 1 || i + 1 >= n || at[i] != '\r' || at[i + 1] != '\n' || (at[1] == '0' && i > 2)) return 0;
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
    static const char ok[] = "+OK\r\n", nil[] = "$-1\r\n", null[] = "_\r\n";
    const char *at = parser->ahead;
    size_t n = parser->n_ahead, length = 0;
    struct reply *reply = &parser->reply;

    if (n == 0) return false;
    if (is_same_again(parser)) return true;
    reply->n_elements = 0;
    if (n >= sizeof(ok) - 1 && memcmp(at, ok, sizeof(ok) - 1) == 0) {
        length = sizeof(ok) - 1;
        reply->self = (struct reply_item){.type = REPLY_STATUS, .text = "OK", .length = 2};
    } else if (n >= sizeof(nil) - 1 && memcmp(at, nil, sizeof(nil) - 1) == 0) {
        length = sizeof(nil) - 1;
        reply->self = (struct reply_item){.type = REPLY_NIL};
    } else if (n >= sizeof(null) - 1 && memcmp(at, null, sizeof(null) - 1) == 0) {
        length = sizeof(null) - 1;
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

/* ---- all replies ---- */

static enum reply_result reply_refuse(struct reply_parser *parser, const char *fault)
{
    parser->fault = fault;
    return REPLY_BAD;
}

/* Read the rest of a line, which is a number as a server writes it: without a plus, or a zero in front. */
static bool line_number(const char *text, size_t length, int64_t *ret)
{
    bool negative = length > 0 && *text == '-';
    uint64_t most = (uint64_t)INT64_MAX + negative, number = 0;
    size_t at = negative;

    if (at == length || (text[at] == '0' && length > 1)) return false;
    for (; at < length; at++) {
        unsigned digit = (unsigned)(text[at] - '0');

        if (digit > 9 || number > (most - digit) / 10) return false;
        number = number * 10 + digit;
    }
    *ret = negative ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

/* Copy a text, with a NUL behind it. */
static enum reply_result take_text(struct reply_parser *parser, struct reply_item *item, const char *text,
                                   size_t length)
{
    size_t used = parser->done.text;

    if (!reply_reserve(parser, &parser->text, used + length + 1)) return REPLY_NOMEM;
    item->offset = used;
    item->length = length;
    if (length != 0) memcpy(parser->text.bytes + used, text, length);
    parser->text.bytes[used + length] = '\0';
    parser->done.text += length + 1;
    return REPLY_READY;
}

static enum reply_result take_status(struct reply_parser *parser, struct reply_item *item, const char *line,
                                     size_t length)
{
    if (memchr(line, '\r', length) != NULL || memchr(line, '\n', length) != NULL)
        return reply_refuse(parser, "a line with half a line break in it");
    return take_text(parser, item, line, length);
}

/* Read a string of that length, behind its header. A header that announces more than we would take is refused at once,
 * not when a deadline ends the wait for it. */
static enum reply_result take_string(struct reply_parser *parser, struct reply_item *item, int64_t length)
{
    size_t at = parser->done.at, end;

    if (length == -1) {
        item->type = REPLY_NIL;
        return REPLY_READY;
    }
    if (length < 0) return reply_refuse(parser, "a string of less than no bytes");
    if ((uint64_t)length > REPLY_BYTES_MAX || at + (size_t)length + 2 > REPLY_BYTES_MAX)
        return reply_refuse(parser, "a reply too large");
    end = at + (size_t)length;
    if (parser->n_ahead < end + 2) return REPLY_NONE;
    if (memcmp(parser->ahead + end, "\r\n", 2) != 0)
        return reply_refuse(parser, "a string longer than its header says");
    parser->done.at = end + 2;
    return take_text(parser, item, parser->ahead + at, (size_t)length);
}

static enum reply_result take_header(struct reply_parser *parser, struct reply_item *item, int64_t n)
{
    bool is_map = item->type == REPLY_MAP;

    if (n == -1 && item->type == REPLY_ARRAY) {
        item->type = REPLY_NIL;
        return REPLY_READY;
    }
    if (n < 0) return reply_refuse(parser, "an array of less than no elements");
    if ((uint64_t)n > (is_map ? REPLY_BYTES_MAX : REPLY_ELEMENTS_MAX))
        return reply_refuse(parser, "an array of too many elements");
    parser->done.missing += (size_t)n * (is_map ? 2 : 1);
    /* Each takes a byte and more. */
    return parser->done.missing <= REPLY_BYTES_MAX ? REPLY_READY : reply_refuse(parser, "a reply too large");
}

static bool type_of(char mark, enum reply_type *ret)
{
    switch (mark) {
    case '+': *ret = REPLY_STATUS; return true;
    case '-': *ret = REPLY_ERROR; return true;
    case ':': *ret = REPLY_INTEGER; return true;
    case '$': *ret = REPLY_STRING; return true;
    case '_': *ret = REPLY_NIL; return true;
    case '*': *ret = REPLY_ARRAY; return true;
    case '>': *ret = REPLY_PUSH; return true;
    case '%': *ret = REPLY_MAP; return true;
    default: return false;
    }
}

/* Read the next value; of an array, a push or a map only the header. NONE: it is not whole. */
static enum reply_result next_value(struct reply_parser *parser, struct reply_item *item)
{
    struct reply_progress *done = &parser->done;
    size_t begin = done->at, from = done->searched > begin ? done->searched : begin + 1;
    const char *mark, *line, *end;
    size_t length;

    *item = (struct reply_item){0};
    if (parser->n_ahead == begin) return REPLY_NONE;
    mark = parser->ahead + begin;
    line = mark + 1;
    if (!type_of(*mark, &item->type)) return reply_refuse(parser, "a value of a kind that was not asked for");
    end = memmem(parser->ahead + from, parser->n_ahead - from, "\r\n", 2);
    if (end == NULL) {
        done->searched = parser->n_ahead - 1;
        return REPLY_NONE;
    }
    length = (size_t)(end - line);
    done->at = begin + length + 3;
    if (item->type == REPLY_STATUS || item->type == REPLY_ERROR) return take_status(parser, item, line, length);
    if (item->type == REPLY_NIL) return length == 0 ? REPLY_READY : reply_refuse(parser, "a null with a value");
    if (!line_number(line, length, &item->integer)) return reply_refuse(parser, "no number where one must be");
    if (item->type == REPLY_INTEGER) return REPLY_READY;
    if (item->type == REPLY_STRING) return take_string(parser, item, item->integer);
    return take_header(parser, item, item->integer);
}

/* The lists in a push become part of it. Those in a map are passed over, and so is what has no room. */
static enum reply_result put_value(struct reply_parser *parser, const struct reply_item *item, bool is_first)
{
    struct reply *reply = &parser->reply;
    enum reply_type type = reply->self.type;

    parser->done.missing--;
    if (is_first) {
        reply->self = *item;
        return REPLY_READY;
    }
    if (item->type >= REPLY_ARRAY && type == REPLY_ARRAY) return reply_refuse(parser, "a reply nested too deep");
    if (item->type >= REPLY_ARRAY) return REPLY_READY;
    if (reply->n_elements == REPLY_ELEMENTS_MAX)
        return type == REPLY_MAP ? REPLY_READY : reply_refuse(parser, "an array of too many elements");
    reply->elements[reply->n_elements++] = *item;
    return REPLY_READY;
}

static void settle(const struct reply_parser *parser, struct reply_item *item)
{
    bool has_text = item->type == REPLY_STATUS || item->type == REPLY_ERROR || item->type == REPLY_STRING;

    item->text = has_text ? parser->text.bytes + item->offset : NULL;
}

/* Read on where the bytes ended before. */
static enum reply_result next_of_any_kind(struct reply_parser *parser)
{
    struct reply_progress *done = &parser->done;
    struct reply *reply = &parser->reply;
    enum reply_result result = REPLY_READY;

    if (parser->n_ahead == 0) return REPLY_NONE;
    if (done->missing == 0) {
        reply->n_elements = 0;
        done->missing = 1;
    }
    while (result == REPLY_READY && done->missing > 0) {
        size_t begin = done->at;
        struct reply_item item;

        result = next_value(parser, &item);
        if (result == REPLY_READY) result = put_value(parser, &item, begin == 0);
        if (result == REPLY_NONE) done->at = begin;
    }
    if (result == REPLY_BAD || result == REPLY_NOMEM) return result;
    if ((result == REPLY_NONE ? parser->n_ahead : done->at) > REPLY_BYTES_MAX)
        return reply_refuse(parser, "a reply too large");
    if (result == REPLY_NONE) {
        keep_rest(parser, 0);
        return parser->nomem ? REPLY_NOMEM : REPLY_NONE;
    }
    take_ahead(parser, done->at);
    parser->same = 0;
    *done = (struct reply_progress){0};
    settle(parser, &reply->self);
    for (size_t i = 0; i < reply->n_elements; i++) settle(parser, &reply->elements[i]);
    return REPLY_READY;
}

enum reply_result reply_next(struct reply_parser *parser, const struct reply **ret, const char **ret_why)
{
    enum reply_result result = REPLY_READY;

    *ret = &parser->reply;
    if (parser->nomem)
        result = REPLY_NOMEM;
    else if (parser->fault != NULL)
        result = REPLY_BAD;
    else if (parser->done.missing != 0 || !next_is_plain(parser))
        result = next_of_any_kind(parser);
    *ret_why = result == REPLY_BAD ? parser->fault : "out of memory";
    return result;
}
