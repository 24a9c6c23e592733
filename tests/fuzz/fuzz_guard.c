/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_guard.c - what a server answers to the look at its guard, and what is made of it
 *
 * The reply is made of the words that the script answers, numbers and any bytes, in any order; one connection
 * follows another. Whatever comes, a quarantine lasts as long as was said, and a guard that will not do has a
 * reason that can be printed.
 */
#include "feed.h"
#include "redis/dialect/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_item(struct feed *feed, struct reply_item *item)
{
    static const char *const words[] = {"new",
                                        "lost",
                                        "kept",
                                        "conflict",
                                        "unset",
                                        "",
                                        "3",
                                        "30000",
                                        "longer",
                                        "2|3|s|500|a|b|9000|500|found|6000|first|0|0",
                                        "2|3|s|500|a|b|9000|500|found|6000|restart|900|99000"};
    uint8_t what = feed_byte(feed);

    *item = (struct reply_item){.type = REPLY_NIL};
    switch (what % 6) {
    case 0: break;
    case 1:
        item->type = REPLY_INTEGER;
        item->integer = (int64_t)feed_number(feed);
        break;
    case 2:
        item->type = REPLY_STATUS;
        item->text = "OK";
        item->length = 2;
        break;
    case 3:
        item->type = REPLY_STRING;
        item->text = words[what / 6 % (sizeof(words) / sizeof(words[0]))];
        item->length = strlen(item->text);
        break;
    default:
        item->type = what % 12 < 6 ? REPLY_STRING : REPLY_ERROR;
        item->text = feed_text(feed, 600, &item->length);
        break;
    }
}

/* As the parser hands them out, every text has a NUL behind it. */
static void terminate(struct reply_item *item, char **kept)
{
    *kept = NULL;
    if (item->text == NULL) return;
    *kept = malloc(item->length + 1);
    CHECK(*kept != NULL);
    memcpy(*kept, item->text, item->length);
    (*kept)[item->length] = '\0';
    item->text = *kept;
}

static void check_text(const char *text, size_t size)
{
    CHECK(strnlen(text, size) < size);
    for (; *text != '\0'; text++) CHECK((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void check_verdict(const struct guard *guard, enum guard_verdict verdict, const struct reply *reply,
                          uint64_t now_us)
{
    char text[GUARD_WHY_SIZE];

    CHECK(!guard->asked);
    CHECK(strnlen(guard->seen, sizeof(guard->seen)) < sizeof(guard->seen));
    switch (verdict) {
    case GUARD_CLEAR: CHECK(guard->until_us == 0 && guard->seen[0] != '\0'); break;
    case GUARD_QUARANTINED:
        CHECK(guard->until_us != 0);
        if (reply->n_elements == 4 && reply->elements[1].type == REPLY_INTEGER &&
            (reply->elements[0].text == NULL || strcmp(reply->elements[0].text, "unset") != 0)) {
            CHECK(guard->until_us >= now_us + (uint64_t)reply->elements[1].integer * 1000);
        }
        guard_describe(guard, (enum guard_set)(now_us % 3), now_us, text, sizeof(text));
        CHECK(text[0] != '\0');
        check_text(text, sizeof(text));
        break;
    case GUARD_ASK: CHECK(!guard->looks && reply->n_elements == 1); break;
    case GUARD_FAILED:
        CHECK(guard->fault != FAULT_NONE && guard->why[0] != '\0');
        check_text(guard->why, sizeof(guard->why));
        break;
    }
}

static void judge_one(struct guard *guard, struct feed *feed, uint64_t now_us)
{
    struct reply reply = {.self = {.type = REPLY_ARRAY}};
    char *kept[REPLY_ELEMENTS_MAX + 1] = {NULL};
    uint8_t n = feed_byte(feed);

    guard->looks = (n & 64u) != 0;
    if (n % 16 == 15) {
        make_item(feed, &reply.self);
        terminate(&reply.self, &kept[REPLY_ELEMENTS_MAX]);
        if (reply.self.type == REPLY_ARRAY) reply.self.type = REPLY_NIL;
    } else {
        reply.n_elements = n % 16 < 8 ? 4 : n % 16 - 8;
        for (size_t i = 0; i < reply.n_elements; i++) {
            make_item(feed, &reply.elements[i]);
            terminate(&reply.elements[i], &kept[i]);
        }
    }
    check_verdict(guard, guard_judge(guard, &reply, now_us), &reply, now_us);
    for (size_t i = 0; i <= REPLY_ELEMENTS_MAX; i++) free(kept[i]);
}

static void ask(struct guard *guard, const struct alloc *alloc, struct feed *feed)
{
    struct node_request request = {.op = OP_BOOTSTRAP};
    struct bytes out;

    request.lease_ms = (uint32_t)feed_number(feed);
    request.force = request.lease_ms % 2 != 0;
    bytes_init(&out, alloc, 65536);
    guard_ask(guard, &out);
    CHECK(out.fault == BYTES_FINE && out.used > 0);
    guard_bootstrap(guard, &out, &request);
    CHECK(out.fault == BYTES_FINE);
    bytes_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    char set[33] = "", run_id[80] = "", replid[80] = "";
    struct alloc alloc;
    struct guard guard;
    size_t length;
    const char *text;
    uint32_t n_nodes, max_lease_ms;
    uint64_t now_us = 1000000;

    alloc_init(&alloc, NULL);
    n_nodes = 1 + feed_byte(&feed) % 31;
    max_lease_ms = (uint32_t)feed_number(&feed);
    text = feed_text(&feed, sizeof(set) - 1, &length);
    /* As options.c takes it: printable. */
    for (size_t i = 0; i < length; i++) set[i] = (char)('!' + (unsigned char)text[i] % 94);
    guard_init(&guard, QUORLOCK_GUARD_CONNECTION, n_nodes, max_lease_ms, set, false);
    CHECK(guard_is_on(&guard));
    while (feed.left > 0) {
        guard_forget(&guard);
        text = feed_text(&feed, sizeof(run_id) - 1, &length);
        snprintf(run_id, sizeof(run_id), "%.*s", (int)length, text);
        snprintf(replid, sizeof(replid), "%.*s", (int)length / 2, text);
        guard_meet(&guard, run_id, replid);
        ask(&guard, &alloc, &feed);
        guard.asked = true;
        judge_one(&guard, &feed, now_us);
        now_us += feed_number(&feed) % 1000000000;
        judge_one(&guard, &feed, now_us);
    }
    return 0;
}
