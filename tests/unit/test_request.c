/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_request.c - the core's commands as requests, and the keys that a denied request asked for
 */
#include <string.h>

#include "lock/request.h"
#include "runtime/owner.h"
#include "test.h"

#define MS    UINT64_C(1000)
#define PLAIN "label:0100000000000000000000000000000000000000"
#define OTHER "label:0200000000000000000000000000000000000000"
#define UUID  "01234567-89ab-4def-8123-456789abcdef"

static const struct core_token one = {{1}}, two = {{2}};

struct request_fixture {
    struct runtime runtime;
    struct terms *terms;
    struct request_texts texts;
    struct core_command command;
    struct node_request request;
    struct node_key keys[2];
};

static int setup(void **state)
{
    static struct request_fixture f;
    static char prefix[] = "app:";

    memset(&f, 0, sizeof(f));
    f.terms = test_calloc(1, sizeof(*f.terms) + sizeof("label:"));
    memcpy(f.terms->label, "label:", sizeof("label:"));
    f.terms->label_length = sizeof("label:") - 1;
    f.runtime.key_prefix = prefix;
    f.runtime.prefix_length = sizeof(prefix) - 1;
    f.keys[0] = (struct node_key){.text = "app:a b", .length = 7};
    f.keys[1] = (struct node_key){.text = "app:\x7f", .length = 5};
    f.command = (struct core_command){.token = one, .tag = {.op = OP_ACQUIRE, .lease_us = 3000 * MS}};
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct request_fixture *f = *state;

    test_free(f->terms);
    return 0;
}

#define REQUEST_TEST(name) TEST_WITH(request_fixture, name, setup, teardown)

static void fill(struct request_fixture *f, const struct core_token *waiter)
{
    f->request = (struct node_request){.keys = f->keys, .n_keys = 1};
    request_fill(&f->request, &f->runtime, f->terms, &f->command, waiter, &f->texts);
}

/* ---- requests ---- */

REQUEST_TEST(each_wish_of_a_command_is_one_of_the_request)
{
    static const struct {
        size_t of_command, of_request;
    } rows[] = {
#define ROW(wish, name) {offsetof(struct core_command, wish), offsetof(struct node_request, name)}
        ROW(explain, explain),       ROW(watch, watch), ROW(patient, patient), ROW(silent, silent),
        ROW(if_deleted, if_deleted), ROW(queues, fair), ROW(any, any),
#undef ROW
    };

    f->command.tag.op = OP_RELEASE;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        *(bool *)((char *)&f->command + rows[i].of_command) = true;
        fill(f, NULL);
        for (size_t k = 0; k < LENGTH(rows); k++) {
            assert_int_equal(*(const bool *)((const char *)&f->request + rows[k].of_request), k == i);
        }
        *(bool *)((char *)&f->command + rows[i].of_command) = false;
    }
}

REQUEST_TEST(numbers_are_in_the_units_of_the_request)
{
    f->terms->config.permits = 8;
    f->terms->config.fencing = true;
    f->terms->config.shared = 5;
    f->terms->fence_ttl_ms = 77;
    f->command.tag.slot = 6;
    f->command.tag.lease_us = 3000 * MS + 999;
    f->command.fence = 99;
    f->command.passed = 0xf0;
    f->command.waited_us = 1234;
    f->command.queued_us = 2999;
    f->command.timeout_us = 100 * MS + 1;
    fill(f, NULL);
    assert_int_equal(f->request.op, OP_ACQUIRE);
    assert_int_equal(f->request.prefix, 4);
    assert_int_equal(f->request.lease_ms, 3000);
    assert_true(f->request.fenced);
    assert_int_equal(f->request.fence, 99);
    assert_int_equal(f->request.fence_ttl_ms, 77);
    assert_int_equal(f->request.shared, 5);
    assert_int_equal(f->request.permits, 8);
    assert_int_equal(f->request.slot, 6);
    assert_false(f->request.any);
    assert_int_equal(f->request.passed, 0xf0);
    assert_int_equal(f->request.waited_us, 1234);
    assert_int_equal(f->request.queued_ms, 2);
    assert_int_equal(f->request.timeout_ms, 101);
    assert_false(f->request.keep);
    f->command.tag.slot = CORE_SLOT_NONE;
    f->command.timeout_us = 100 * MS;
    fill(f, NULL);
    assert_int_equal(f->request.slot, 0);
    assert_true(f->request.any);
    assert_int_equal(f->request.timeout_ms, 100);
}

REQUEST_TEST(only_a_release_with_a_lease_keeps_the_keys)
{
    f->command.tag.op = OP_RELEASE;
    fill(f, NULL);
    assert_true(f->request.keep);
    f->command.tag.lease_us = 0;
    fill(f, NULL);
    assert_false(f->request.keep);
    f->command.tag.op = OP_EXTEND;
    f->command.tag.lease_us = 3000 * MS;
    fill(f, NULL);
    assert_false(f->request.keep);
}

static void expect_names(const struct node_request *request, const char *owner, const char *waiter)
{
    assert_int_equal(request->owner_length, strlen(owner));
    assert_memory_equal(request->owner, owner, strlen(owner));
    assert_int_equal(request->waiter_length, waiter != NULL ? strlen(waiter) : 0);
    assert_int_equal(request->waiter != NULL, waiter != NULL);
    if (waiter != NULL) assert_memory_equal(request->waiter, waiter, strlen(waiter));
}

REQUEST_TEST(owners_and_waiters_are_named)
{
    static const struct {
        enum op op;
        uint64_t shared;
        bool queues, waits;
        const char *waiter;
    } rows[] = {
        {OP_ACQUIRE, 0, false, true, NULL}, {OP_ACQUIRE, 1, false, true, OTHER}, {OP_ACQUIRE, 0, true, true, OTHER},
        {OP_ACQUIRE, 1, true, false, NULL}, {OP_EXTEND, 1, true, true, NULL},    {OP_INTEND, 0, false, false, PLAIN},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        f->texts.owner_length = f->texts.waiter_length = 0;
        f->command.tag.op = (uint8_t)rows[i].op;
        f->command.queues = rows[i].queues;
        f->terms->config.shared = rows[i].shared;
        fill(f, rows[i].waits ? &two : NULL);
        expect_names(&f->request, PLAIN, rows[i].waiter);
    }
}

/* One step has several requests, mostly of one owner. */
REQUEST_TEST(each_token_has_its_name)
{
    const char *text;

    fill(f, NULL);
    text = f->request.owner;
    expect_names(&f->request, PLAIN, NULL);
    fill(f, NULL);
    assert_ptr_equal(f->request.owner, text);
    expect_names(&f->request, PLAIN, NULL);
    f->command.token = two;
    fill(f, NULL);
    expect_names(&f->request, OTHER, NULL);
    memcpy(f->runtime.uuid, UUID, sizeof(UUID));
    f->texts.owner_length = 0;
    fill(f, NULL);
    assert_memory_equal(f->request.owner, UUID ":", sizeof(UUID ":") - 1);
    assert_int_equal(f->request.owner_length, strspn(f->request.owner, "0123456789abcdef-:"));
}

/* ---- keys that were denied ---- */

#define ERROR     "No permissions to access a key"
#define ASKED_FOR ERROR "; it asked for"

REQUEST_TEST(a_denied_request_names_its_keys)
{
    static const struct {
        uint32_t permits;
        uint64_t shared;
        bool fencing, fair, guard;
        uint32_t n_keys;
        const char *keys;
    } rows[] = {
        {.n_keys = 1, .keys = " app:a?b"},
        {.n_keys = 2, .keys = " app:a?b app:?"},
        {.n_keys = 1, .guard = true, .keys = " app:a?b quorlock:guard"},
        {.n_keys = 1, .fencing = true, .keys = " app:a?b app:quorlock:fence:a?b"},
        {.n_keys = 1, .shared = 1, .keys = " app:a?b app:quorlock:readers:a?b app:quorlock:intents:a?b"},
        {.n_keys = 1, .fair = true, .keys = " app:a?b app:quorlock:queue:a?b"},
        {.n_keys = 1, .permits = 8, .keys = " app:quorlock:permits:a?b app:quorlock:slot:5:a?b"},
        {.n_keys = 1,
         .permits = 8,
         .fair = true,
         .fencing = true,
         .keys = " app:quorlock:permits:a?b app:quorlock:queue:a?b app:quorlock:slot:5:a?b "
                 "app:quorlock:fence:quorlock:slot:5:a?b"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct node_reply reply = {.fault = FAULT_AUTH, .error = ERROR};
        char text[REQUEST_DENIED_SIZE];

        f->terms->config = (struct core_config){
            .permits = rows[i].permits, .shared = rows[i].shared, .fencing = rows[i].fencing, .fair = rows[i].fair};
        f->runtime.options.guard = rows[i].guard ? QUORLOCK_GUARD_CONNECTION : QUORLOCK_GUARD_OFF;
        request_denied(&reply, &f->runtime, f->terms, f->keys, rows[i].n_keys, 5, text);
        assert_ptr_equal(reply.error, text);
        assert_memory_equal(text, ASKED_FOR, sizeof(ASKED_FOR) - 1);
        assert_string_equal(text + sizeof(ASKED_FOR) - 1, rows[i].keys);
    }
}

REQUEST_TEST(another_error_stays_as_it_is)
{
    static const struct node_reply replies[] = {{.fault = FAULT_OTHER, .error = ERROR},
                                                {.fault = FAULT_AUTH},
                                                {.fault = FAULT_AUTH, .error = "NOPERM channels"}};

    for (size_t i = 0; i < LENGTH(replies); i++) {
        struct node_reply reply = replies[i];
        char text[REQUEST_DENIED_SIZE];

        request_denied(&reply, &f->runtime, f->terms, f->keys, 1, 0, text);
        assert_ptr_equal(reply.error, replies[i].error);
    }
}

/* A key that does not fit is left out whole, and what follows it is not. */
REQUEST_TEST(a_key_that_is_too_long_is_left_out)
{
    static char bytes[REQUEST_DENIED_SIZE];
    const size_t front = sizeof(ASKED_FOR) - 1 + 1, room = REQUEST_DENIED_SIZE - front;

    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, f->runtime.key_prefix, 4);
    f->runtime.options.guard = QUORLOCK_GUARD_OFF;
    for (size_t length = room - 3; length <= room + 3; length++) {
        struct node_reply reply = {.fault = FAULT_AUTH, .error = ERROR};
        char text[REQUEST_DENIED_SIZE];

        f->keys[0] = (struct node_key){.text = bytes, .length = length};
        f->keys[1] = (struct node_key){.text = "app:b", .length = 5};
        request_denied(&reply, &f->runtime, f->terms, f->keys, 2, 0, text);
        if (length < room) {
            assert_int_equal(strlen(text), front + length);
        } else {
            assert_string_equal(text, ASKED_FOR " app:b");
        }
    }
}
