/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct guard guard_off = {.mode = QUORLOCK_GUARD_OFF, .max_lease_ms = 700};
const struct guard guard_lax = {.mode = QUORLOCK_GUARD_CONNECTION, .seen = "G", .max_lease_ms = 500};
const struct guard guard_strict = {.mode = QUORLOCK_GUARD_STRICT, .seen = "G", .max_lease_ms = 500};

int dialect_setup(void **state)
{
    static struct dialect_fixture f;

    reply_init(&f.parser, &memory);
    bytes_init(&f.out, &memory, 65536);
    *state = &f;
    reply_open(&f.parser);
    return 0;
}

int dialect_teardown(void **state)
{
    struct dialect_fixture *f = *state;

    reply_clear(&f->parser);
    bytes_clear(&f->out);
    return 0;
}

void dialect_feed(struct dialect_fixture *f, const char *wire)
{
    reply_feed(&f->parser, wire, strlen(wire));
}

enum reply_result dialect_next(struct dialect_fixture *f)
{
    return reply_next(&f->parser, &f->reply, &f->why);
}

static struct node_reply judge(struct dialect_fixture *f, const struct dialect *dialect, enum op op, bool by_script)
{
    struct node_reply ret;

    memset(&ret, 0x5a, sizeof(ret));
    dialect->judge(op, by_script, f->reply, &ret, f->text, sizeof(f->text));
    return ret;
}

struct node_reply dialect_judge(struct dialect_fixture *f, const struct dialect *dialect, enum op op, bool by_script,
                                const char *wire)
{
    dialect_feed(f, wire);
    if (dialect_next(f) != REPLY_READY) fail_msg("%s: %s", wire, f->why);
    return judge(f, dialect, op, by_script);
}

void dialect_build_one(struct dialect_fixture *f, const struct dialect *dialect, const struct node_request *request,
                       const struct guard *guard, uint32_t whole_sent, bool by_script)
{
    bytes_cut(&f->out, 0);
    assert_int_equal(dialect->build(&f->out, request, &whole_sent, guard), by_script);
    assert_int_equal(f->out.fault, BYTES_FINE);
}

const char *dialect_word(const struct dialect_fixture *f, size_t index, size_t *ret_length)
{
    const char *end = f->out.data + f->out.used;
    const char *at = memchr(f->out.data, '\n', f->out.used);

    assert_non_null(at);
    for (at++;; index--) {
        size_t length = strtoul(at + 1, NULL, 10);

        at = memchr(at, '\n', (size_t)(end - at));
        assert_non_null(at);
        assert_true(++at + length + 2 <= end);
        *ret_length = length;
        if (index == 0) return at;
        at += length + 2;
    }
}

const char *dialect_commands(struct dialect_fixture *f)
{
    static char text[1024];
    const char *at = f->out.data, *end = f->out.data + f->out.used;
    size_t used = 0;

    text[0] = '\0';
    assert_int_equal(f->out.fault, BYTES_FINE);
    while (at < end) {
        size_t n = strtoul(at + 1, NULL, 10);

        assert_int_equal(*at, '*');
        at = strchr(at, '\n') + 1;
        for (size_t i = 0; i < n; i++) {
            size_t length = strtoul(at + 1, NULL, 10);
            const char *word = strchr(at, '\n') + 1;
            bool script = length > 200;

            used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s%s", script ? 6 : (int)length,
                                     script ? "SCRIPT" : word, i + 1 < n ? " " : "\n");
            at = word + length + 2;
        }
    }
    bytes_cut(&f->out, 0);
    return text;
}

/* The letter of a script: whole, or its hash; '\0': it is none. */
static char letter_of(const struct dialect *dialect, const char *word, size_t length)
{
    for (size_t i = 0; i < SCRIPTS; i++) {
        const struct dialect_script *script = &dialect->scripts[i];

        if (script->text == NULL) continue;
        if (length == DIALECT_SHA_LENGTH && memcmp(word, script->sha, length) == 0) return (char)('a' + i);
        if (length == script->length && memcmp(word, script->text, length) == 0) return (char)('a' + i);
    }
    return '\0';
}

static void join_words(const struct dialect_fixture *f, const struct dialect *dialect, char *ret, size_t size)
{
    size_t n = strtoul(f->out.data + 1, NULL, 10), used = 0, length = 0;

    for (size_t k = 0; k < n; k++) {
        const char *word = dialect_word(f, k, &length), *end = word + length + 2;
        char letter = letter_of(dialect, word, length);

        if (letter != '\0') {
            word = &letter;
            length = 1;
        }
        used += (size_t)snprintf(ret + used, size - used, "%s%.*s", k > 0 ? " " : "", (int)length, word);
        if (k + 1 == n) assert_ptr_equal(end, f->out.data + f->out.used);
    }
}

/* Whole at first, and then the same by its hash. */
void assert_sent(struct dialect_fixture *f, const struct dialect *dialect, const struct dialect_sent *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool script = strncmp(rows[i].words, "EVALSHA", 7) == 0;
        char words[512] = "", whole[512] = "EVAL";

        dialect_build_one(f, dialect, &rows[i].request, rows[i].guard, ALL_SENT, script);
        join_words(f, dialect, words, sizeof(words));
        assert_string_equal(words, rows[i].words);
        if (!script) continue;
        dialect_build_one(f, dialect, &rows[i].request, rows[i].guard, 0, true);
        join_words(f, dialect, words, sizeof(words));
        snprintf(whole + 4, sizeof(whole) - 4, "%s", rows[i].words + 7);
        assert_string_equal(words, whole);
    }
}

static void check(const struct dialect_judged *row, const struct node_reply *got)
{
    const char *error = got->error != NULL ? got->error : got->type;
    int64_t quarantine_ms = row->quarantine_ms != 0 ? row->quarantine_ms : -1;
    int64_t waiters = row->waiters != 0 ? row->waiters : -1;

    if (got->outcome != row->outcome || got->fault != row->fault || got->ttl_ms != row->ttl_ms ||
        got->fence != row->fence || got->node_time_us != row->node_time_us || got->count != row->count ||
        got->refusing != row->refusing || got->has_guard != row->has_guard || got->quarantine_ms != quarantine_ms ||
        got->waiters != waiters) {
        fail_msg(
            "%d %s: outcome %d fault %d ttl %lld fence %llu time %llu count %u guard %d quarantine %lld waiters %lld",
            (int)row->op, row->wire, got->outcome, got->fault, (long long)got->ttl_ms, (unsigned long long)got->fence,
            (unsigned long long)got->node_time_us, (unsigned)got->count, got->has_guard, (long long)got->quarantine_ms,
            (long long)got->waiters);
    }
    if ((row->holder == NULL) != (got->holder == NULL) ||
        (got->holder != NULL && (strcmp(got->holder, row->holder) != 0 || got->holder_length != strlen(row->holder)))) {
        fail_msg("%s: holder %s", row->wire, got->holder != NULL ? got->holder : "(null)");
    }
    if ((row->error == NULL) != (error == NULL) || (error != NULL && strstr(error, row->error) == NULL)) {
        fail_msg("%s: error %s", row->wire, error != NULL ? error : "(null)");
    }
}

void assert_judged(struct dialect_fixture *f, const struct dialect *dialect, const struct dialect_judged *rows,
                   size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct node_reply got = dialect_judge(f, dialect, rows[i].op, !rows[i].by_set, rows[i].wire);

        check(&rows[i], &got);
        for (const char *at = rows[i].wire; *at != '\0'; at++) {
            assert_int_equal(dialect_next(f), REPLY_NONE);
            reply_feed(&f->parser, at, 1);
        }
        assert_int_equal(dialect_next(f), REPLY_READY);
        got = judge(f, dialect, rows[i].op, !rows[i].by_set);
        check(&rows[i], &got);
    }
    /* More than the reader keeps without moving what is left. */
    for (size_t i = 0; i < 4 * n; i++) dialect_feed(f, rows[i % n].wire);
    for (size_t i = 0; i < 4 * n; i++) {
        const struct dialect_judged *row = &rows[i % n];
        struct node_reply got;

        assert_int_equal(dialect_next(f), REPLY_READY);
        got = judge(f, dialect, row->op, !row->by_set);
        check(row, &got);
    }
    assert_int_equal(dialect_next(f), REPLY_NONE);
}
