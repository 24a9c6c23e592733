/* SPDX-License-Identifier: BSD-3-Clause */
#include "parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "owner.h"

static bool is_same(const struct quorlock_holder *one, const struct quorlock_holder *other)
{
    return one->kind == other->kind && one->slot == other->slot && (one->shared != 0) == (other->shared != 0) &&
           strcmp(one->holder, other->holder) == 0;
}

static const struct quorlock_holder *on_node(const struct shown_node *node, const struct part *part)
{
    for (size_t i = 0; i < node->n_holders; i++)
        if (is_same(part->of, node->holders[i])) return node->holders[i];
    return NULL;
}

/* parts_count - count the nodes of a part, and find its highest token and the Qth longest of its leases. */
static void parts_count(struct part *part, const struct shown *report)
{
    int64_t left_ms[QUORLOCK_NODES_MAX] = {0};

    for (size_t i = 0; i < report->n_nodes && i < QUORLOCK_NODES_MAX; i++) {
        const struct quorlock_holder *holder = on_node(&report->nodes[i], part);
        size_t at = part->n_nodes;
        int64_t ms;

        if (holder == NULL) continue;
        ms = holder->ttl_ms == -1 ? INT64_MAX : holder->ttl_ms;
        for (; at > 0 && left_ms[at - 1] < ms; at--) left_ms[at] = left_ms[at - 1];
        left_ms[at] = ms;
        part->n_nodes++;
        if (holder->fence > part->fence) part->fence = holder->fence;
    }
    if (part->n_nodes < report->quorum || left_ms[report->quorum - 1] < 0) return;
    part->valid_ms = left_ms[report->quorum - 1] > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms[report->quorum - 1];
}

static bool is_known(const struct parts *parts, const struct quorlock_holder *holder)
{
    for (size_t i = 0; i < parts->n; i++)
        if (is_same(parts->all[i].of, holder)) return true;
    return false;
}

static int parts_compare(const void *a, const void *b)
{
    const struct quorlock_holder *one = ((const struct part *)a)->of, *other = ((const struct part *)b)->of;

    if (one->kind != other->kind) return one->kind < other->kind ? -1 : 1;
    if (one->slot != other->slot) return one->slot < other->slot ? -1 : 1;
    if (one->place != other->place) return one->place < other->place ? -1 : 1;
    return strcmp(one->holder, other->holder);
}

struct parts parts_find(const struct shown *report)
{
    struct parts parts = {.n_nodes = report->n_nodes};
    size_t most = 0;

    for (size_t i = 0; i < report->n_nodes; i++) {
        most += report->nodes[i].n_holders;
        if (report->nodes[i].permits > parts.permits) parts.permits = report->nodes[i].permits;
    }
    if (most == 0) return parts;
    parts.all = calloc(most, sizeof(*parts.all));
    parts.failed = parts.all == NULL;
    for (size_t i = 0; i < report->n_nodes && !parts.failed; i++) {
        for (size_t k = 0; k < report->nodes[i].n_holders; k++) {
            const struct quorlock_holder *holder = report->nodes[i].holders[k];
            struct part *part = &parts.all[parts.n];

            if (is_known(&parts, holder)) continue;
            *part = (struct part){.of = holder};
            parts_count(part, report);
            parts.slots += part->of->kind == QUORLOCK_HOLDER_SLOT && part->n_nodes >= report->quorum;
            parts.readers += part->of->kind == QUORLOCK_HOLDER_READER && part->n_nodes >= report->quorum;
            parts.n++;
        }
    }
    if (!parts.failed) qsort(parts.all, parts.n, sizeof(*parts.all), parts_compare);
    return parts;
}

void parts_clear(struct parts *parts)
{
    free(parts->all);
    *parts = (struct parts){0};
}

size_t parts_on_node(const struct shown_node *node, int kind)
{
    size_t n = 0;

    for (size_t i = 0; i < node->n_holders; i++) n += node->holders[i]->kind == kind;
    return n;
}

/* ---- as text ---- */

enum column { PART, HOLDER, NODES, LEFT, FENCE, N_COLUMNS };

static void parts_add_cell(struct text *cell, const void *rows, size_t row, size_t column)
{
    const struct parts *parts = rows;
    const struct part *part = &parts->all[row];

    switch (column) {
    case PART:
        if (part->of->kind == QUORLOCK_HOLDER_SLOT) text_format(cell, "slot %u", part->of->slot);
        if (part->of->kind == QUORLOCK_HOLDER_READER) text_format(cell, "reader");
        if (part->of->kind == QUORLOCK_HOLDER_WAITS)
            text_format(cell, "%s waits", part->of->shared != 0 ? "reader" : "writer");
        if (part->of->place > 0) text_format(cell, ", place %" PRIu32, part->of->place);
        break;
    case HOLDER: owner_whole(cell, part->of->holder); break;
    case NODES: text_format(cell, "%zu of %zu", part->n_nodes, parts->n_nodes); break;
    case LEFT:
        if (part->valid_ms == UINT32_MAX) text_format(cell, "no expiry");
        if (part->valid_ms > 0 && part->valid_ms < UINT32_MAX) text_format(cell, "%" PRIu32 " ms", part->valid_ms);
        break;
    default:
        if (part->fence != 0) text_format(cell, "%" PRIu64, part->fence);
        break;
    }
}

void parts_table(struct text *text, const struct parts *parts)
{
    const char *heads[N_COLUMNS] = {[PART] = "part", [HOLDER] = "holder", [NODES] = "nodes", [LEFT] = "left"};

    if (parts->n == 0) return;
    for (size_t i = 0; i < parts->n; i++)
        if (parts->all[i].fence != 0) heads[FENCE] = "fence";
    text_add_table(text, heads, N_COLUMNS, parts_add_cell, parts, parts->n);
}

/* ---- as JSON ---- */

static const char *kind_word(int kind)
{
    return kind == QUORLOCK_HOLDER_SLOT ? "slot" : kind == QUORLOCK_HOLDER_READER ? "reader" : "waits";
}

static json_t *begin_json(const struct quorlock_holder *holder)
{
    json_t *object = json_object();

    document_add(&object, "kind", document_text(kind_word(holder->kind)));
    if (holder->kind == QUORLOCK_HOLDER_SLOT) document_add(&object, "slot", document_number(holder->slot, 0));
    if (holder->kind == QUORLOCK_HOLDER_WAITS) document_add(&object, "shared", document_truth(holder->shared != 0));
    if (holder->kind == QUORLOCK_HOLDER_WAITS) document_add(&object, "place", document_number(holder->place, 1));
    document_add(&object, "holder", document_text(holder->holder));
    return object;
}

json_t *parts_json(const struct parts *parts)
{
    json_t *array = json_array();

    for (size_t i = 0; i < parts->n; i++) {
        const struct part *part = &parts->all[i];
        json_t *object = begin_json(part->of);

        document_add(&object, "nodes", document_number((int64_t)part->n_nodes, 0));
        document_add(&object, "valid_ms", document_number(part->valid_ms, 0));
        if (part->of->kind == QUORLOCK_HOLDER_SLOT)
            document_add(&object, "fence", document_number((int64_t)part->fence, 1));
        document_append(&array, object);
    }
    return array;
}

json_t *parts_node_json(const struct shown_node *node)
{
    json_t *array = json_array();

    for (size_t i = 0; i < node->n_holders; i++) {
        const struct quorlock_holder *holder = node->holders[i];
        json_t *object = begin_json(holder);

        document_add(&object, "ttl_ms", document_number(holder->ttl_ms, -1));
        if (holder->kind == QUORLOCK_HOLDER_SLOT)
            document_add(&object, "fence", document_number((int64_t)holder->fence, 1));
        document_append(&array, object);
    }
    return array;
}
