/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_examine.c - what examined servers say, read as facts, and the doctor's findings on them
 */
#include "admin/facts.h"
#include "feed.h"
#include "redis/examine.h"

#define NODES_MAX 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_word(const char *text, size_t size)
{
    CHECK(strnlen(text, size) < size);
    for (; *text != '\0'; text++) CHECK((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void check_facts(const struct examine_facts *facts)
{
    check_word(facts->kind, sizeof(facts->kind));
    check_word(facts->version, sizeof(facts->version));
    check_word(facts->mode, sizeof(facts->mode));
    check_word(facts->role, sizeof(facts->role));
    check_word(facts->run_id, sizeof(facts->run_id));
    check_word(facts->replid, sizeof(facts->replid));
    check_word(facts->policy, sizeof(facts->policy));
    check_word(facts->guard.set, sizeof(facts->guard.set));
    CHECK(facts->refused_rights >> EXAMINE_RIGHTS == 0);
    CHECK(facts->refused_names >> EXAMINE_NAMES == 0);
    CHECK(facts->guard.quarantine_ms >= 0);
    CHECK(facts->guard.quarantine_ms <= (int64_t)UINT32_MAX + 1);
}

/* One line of INFO, with a value that is a number, a known word or any bytes. */
static void read_info(struct feed *feed, struct examine_facts *facts, enum examine_section section)
{
    static const char *const fields[] = {
        "redis_version", "valkey_version", "redis_mode",       "server_mode",           "run_id",    "role",
        "master_replid", "aof_enabled",    "used_memory",      "aof_last_write_status", "maxmemory", "maxmemory_policy",
        "maxclients",    "loading",        "connected_slaves", "connected_clients"};
    char text[2048] = "";
    size_t used = 0;

    for (uint8_t n = feed_byte(feed) % 8; n > 0; n--) {
        size_t length;
        const char *field = fields[feed_byte(feed) % (sizeof(fields) / sizeof(fields[0]))];
        const char *value = feed_text(feed, 100, &length);
        int written = snprintf(text + used, sizeof(text) - used, "%s:", field);

        used += (size_t)written;
        memcpy(text + used, value, length);
        used += length;
        text[used++] = '\r';
        text[used++] = '\n';
    }
    examine_read_info(facts, section, text, used);
}

static void read_guard(struct feed *feed, struct examine_facts *facts)
{
    char text[800];
    size_t length;
    const char *rest;
    int used = 0;
    uint8_t what = feed_byte(feed);

    if (what % 2 == 0) {
        rest = feed_text(feed, 255, &length);
        examine_read_guard(facts, rest, length);
        return;
    }
    used = snprintf(text, sizeof(text), "1|%llu|s|%llu|", (unsigned long long)(feed_number(feed) % 40),
                    (unsigned long long)feed_number(feed));
    used += snprintf(text + used, sizeof(text) - (size_t)used, "%s|%s|%llu", what % 4 == 1 ? facts->run_id : "r",
                     facts->replid, (unsigned long long)feed_number(feed));
    if (what % 8 < 4) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, "|%llu", (unsigned long long)feed_number(feed));
    }
    rest = feed_text(feed, 200, &length);
    memcpy(text + used, rest, length);
    examine_read_guard(facts, text, (size_t)used + length);
}

static void read_one(struct feed *feed, struct examine_facts *facts)
{
    uint8_t what = feed_byte(feed);
    size_t length;
    const char *text;

    switch (what % 8) {
    case 0:
    case 1:
    case 2: read_info(feed, facts, (enum examine_section)(what / 8 % EXAMINE_SECTIONS)); break;
    case 3: read_guard(feed, facts); break;
    case 4: {
        /* Eleven digits of seconds and six of less, as examine.c lets through. */
        int64_t server_us = (int64_t)(feed_number(feed) % UINT64_C(99999999999000000));
        int64_t before_us = (int64_t)(feed_number(feed) % UINT64_C(99999999999000000));

        if ((what & 64) != 0) server_us = -server_us / 10;
        examine_read_time(facts, server_us, before_us, before_us + (int64_t)(feed_number(feed) >> 16) - 1000);
        break;
    }
    case 5:
        text = feed_text(feed, 200, &length);
        examine_read_refusal(facts, (enum examine_right)(what / 8 % EXAMINE_RIGHTS),
                             (enum examine_name)(feed_byte(feed) % (EXAMINE_NAMES + 1)), text, length);
        break;
    case 6:
        examine_read_refusal(facts, (enum examine_right)(what / 8 % EXAMINE_RIGHTS), EXAMINE_LOCK,
                             "NOPERM No permissions", 21);
        break;
    default:
        facts->reachable = (what & 8) == 0;
        facts->loopback = (what & 16) != 0;
        facts->nomem = (what & 32) != 0;
        if (!facts->reachable) snprintf(facts->error, sizeof(facts->error), "no answer");
        break;
    }
    check_facts(facts);
}

static void check_findings(const struct diagnosis *diagnosis)
{
    CHECK(diagnosis->n_findings <= diagnosis->room);
    for (size_t i = 0; i < diagnosis->n_findings; i++) {
        const struct quorlock_finding *finding = diagnosis->findings[i];

        CHECK(finding->code != NULL && finding->text != NULL && finding->remedy != NULL);
        CHECK(finding->severity >= QUORLOCK_SEVERITY_NOTE && finding->severity <= QUORLOCK_SEVERITY_OUTAGE);
        CHECK(finding->severity <= diagnose_severity(diagnosis));
        if (i > 0) CHECK(finding->severity <= diagnosis->findings[i - 1]->severity);
        check_word(finding->text, DIAGNOSE_TEXT_SIZE);
        check_word(finding->remedy, DIAGNOSE_REMEDY_SIZE);
    }
}

/* facts_write asserts that all has room. */
static void check_json(const struct diagnose_set *set)
{
    size_t room = facts_room(set->nodes, set->n_nodes);
    char *json = calloc(1, room);

    CHECK(json != NULL);
    facts_write(set->nodes, set->n_nodes, json, room);
    CHECK(json[strlen(json) - 1] == ']');
    free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct examine_facts facts[NODES_MAX];
    struct feed feed = {data, size};
    struct diagnose_node nodes[NODES_MAX];
    struct diagnose_set set = {.nodes = nodes, .set = "s", .prefix = ""};
    struct diagnosis diagnosis = {.room = diagnose_room(NODES_MAX)};
    uint8_t shape = feed_byte(&feed);

    memset(facts, 0, sizeof(facts));
    set.n_nodes = 1 + shape % NODES_MAX;
    set.quorum = (shape & 16) != 0 ? set.n_nodes : set.n_nodes / 2 + 1;
    set.named = (shape & 32) != 0;
    set.allow_eviction = (shape & 64) != 0;
    set.max_lease_ms = (shape & 128) != 0 ? (uint32_t)feed_number(&feed) : 0;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        nodes[i] = (struct diagnose_node){.name = "h:1", .user = i == 1 ? "bob" : NULL, .facts = &facts[i]};
        facts[i].reachable = true;
    }
    while (feed.left > 0) {
        struct examine_facts *of = &facts[feed_byte(&feed) % set.n_nodes];

        read_one(&feed, of);
    }
    diagnosis.findings = calloc(diagnosis.room, sizeof(const struct quorlock_finding *));
    diagnosis.words = calloc(diagnosis.room, sizeof(*diagnosis.words));
    CHECK(diagnosis.findings != NULL && diagnosis.words != NULL);
    diagnose(&set, &diagnosis);
    check_findings(&diagnosis);
    check_json(&set);
    free(diagnosis.findings);
    free(diagnosis.words);
    return 0;
}
