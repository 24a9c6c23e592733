/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/facts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/owner.h"

#define ESCAPE_LENGTH 6u    /* "\u001f" */
#define REFUSED_SIZE  160   /* of the names of all rights */
#define FRAME_SIZE    2048u /* what does not come from texts: names of members, numbers, rights */

struct object {
    char *at;
    size_t left;
    const char *before; /* the next member */
};

static void facts_put(struct object *object, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void facts_put(struct object *object, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(object->at, object->left, format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < object->left);
    if (n < 0 || (size_t)n >= object->left) return;
    object->at += n;
    object->left -= (size_t)n;
}

static void facts_put_name(struct object *object, const char *name)
{
    facts_put(object, "%s\"%s\":", object->before, name);
    object->before = ",";
}

/* facts_put_character - write the first character, and return its length. Bytes that are not UTF-8 become U+FFFD. */
static size_t facts_put_character(struct object *object, const char *text)
{
    unsigned char byte = (unsigned char)*text;
    size_t step = byte < 0x80 ? 1 : owner_step(text);

    if (byte < 0x20) {
        facts_put(object, "\\u%04x", byte);
    } else if (byte >= 0x80 && step == 1) {
        facts_put(object, "\ufffd");
    } else {
        facts_put(object, "%s%.*s", byte == '"' || byte == '\\' ? "\\" : "", (int)step, text);
    }
    return step;
}

/* An empty text is an unknown one. */
static void facts_put_text(struct object *object, const char *name, const char *text)
{
    facts_put_name(object, name);
    if (text[0] == '\0') {
        facts_put(object, "null");
        return;
    }
    facts_put(object, "\"");
    while (*text != '\0') text += facts_put_character(object, text);
    facts_put(object, "\"");
}

static void facts_put_number(struct object *object, const char *name, bool known, int64_t number)
{
    facts_put_name(object, name);
    if (known) {
        facts_put(object, "%" PRId64, number);
    } else {
        facts_put(object, "null");
    }
}

static void facts_put_truth(struct object *object, const char *name, bool known, bool truth)
{
    facts_put_name(object, name);
    facts_put(object, "%s", !known ? "null" : truth ? "true" : "false");
}

/* ---- a node ---- */

/* A server may tell more than a reader of JSON takes. */
static void facts_put_bytes(struct object *object, const char *name, bool known, uint64_t bytes)
{
    facts_put_number(object, name, known && bytes <= INT64_MAX, (int64_t)bytes);
}

static void facts_put_server(struct object *object, const struct examine_facts *facts)
{
    char version[sizeof(facts->kind) + sizeof(facts->version)] = "";

    if (facts->version[0] != '\0') snprintf(version, sizeof(version), "%s %s", facts->kind, facts->version);
    facts_put_text(object, "version", version);
    facts_put_text(object, "mode", facts->mode);
    facts_put_text(object, "role", facts->role);
    facts_put_text(object, "run_id", facts->run_id);
    facts_put_number(object, "replicas", facts->role[0] != '\0', facts->replicas);
    facts_put_bytes(object, "used_memory", facts->has_memory, facts->used_memory);
    facts_put_bytes(object, "maxmemory", facts->has_memory, facts->maxmemory);
    facts_put_text(object, "maxmemory_policy", facts->policy);
    facts_put_truth(object, "appendonly", facts->has_persistence, facts->aof);
    facts_put_text(object, "appendfsync", facts->appendfsync);
}

static void facts_put_guard(struct object *object, const struct examine_guard *guard)
{
    bool there = guard->state == EXAMINE_GUARD_THERE;

    facts_put_truth(object, "guard", guard->state != EXAMINE_GUARD_UNKNOWN, guard->state != EXAMINE_GUARD_NONE);
    facts_put_number(object, "guard_nodes", there, guard->n_nodes);
    facts_put_text(object, "guard_set", there ? guard->set : "");
    facts_put_number(object, "guard_max_lease_ms", there, guard->max_lease_ms);
    facts_put_number(object, "quarantine_ms", there, guard->quarantine_ms);
}

static void facts_put_node(struct object *object, const struct diagnose_node *node)
{
    const struct examine_facts *facts = node->facts;
    bool here = facts->reachable;
    char refused[REFUSED_SIZE];

    diagnose_list_rights(refused, sizeof(refused), facts->refused_rights, false);
    facts_put_text(object, "node", node->name);
    facts_put_truth(object, "reachable", true, here);
    facts_put_text(object, "error", here ? "" : facts->error);
    facts_put_number(object, "latency_us", here, facts->latency_us);
    facts_put_server(object, facts);
    facts_put_guard(object, &facts->guard);
    facts_put_number(object, "clock_offset_us", facts->has_clock, facts->offset_us);
    facts_put_number(object, "clock_error_us", facts->has_clock, facts->offset_error_us);
    facts_put_number(object, "clients", facts->has_clients, facts->clients);
    facts_put_number(object, "clients_max", facts->has_clients, facts->maxclients);
    facts_put_text(object, "refused", refused);
    facts_put_truth(object, "tracking", here, diagnose_has_tracking(facts));
    facts_put_truth(object, "msetex", here, diagnose_has_msetex(facts));
    facts_put_truth(object, "tls", true, facts->tls);
}

size_t facts_room(const struct diagnose_node *nodes, uint32_t n_nodes)
{
    size_t room = sizeof("[]");

    for (uint32_t i = 0; i < n_nodes; i++)
        room += FRAME_SIZE + ESCAPE_LENGTH * (strlen(nodes[i].name) + sizeof(struct examine_facts));
    return room;
}

void facts_write(const struct diagnose_node *nodes, uint32_t n_nodes, char *ret, size_t size)
{
    struct object object = {.at = ret, .left = size};

    facts_put(&object, "[");
    for (uint32_t i = 0; i < n_nodes; i++) {
        object.before = i == 0 ? "{" : ",{";
        facts_put_node(&object, &nodes[i]);
        facts_put(&object, "}");
    }
    facts_put(&object, "]");
}
