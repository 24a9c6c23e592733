/* SPDX-License-Identifier: BSD-3-Clause */
#include "json.h"

#include <inttypes.h>

static void json_node(struct text *text, const struct quorlock_node_report *node, bool broken)
{
    text_format(text, "{\"node\": ");
    text_add_json(text, node->node);
    text_format(text, ", \"state\": ");
    text_add_json(text, node->state);
    text_format(text, ", \"holder\": ");
    text_add_json(text, node->holder);
    text_format(text, ", \"ttl_ms\": ");
    if (node->ttl_ms >= -1) {
        text_format(text, "%" PRId64, node->ttl_ms);
    } else {
        text_format(text, "null");
    }
    if (node->type) {
        text_format(text, ", \"type\": ");
        text_add_json(text, node->type);
    }
    if (node->count) text_format(text, ", \"count\": %" PRIu32, node->count);
    text_format(text, ", \"latency_us\": ");
    if (node->latency_us) {
        text_format(text, "%" PRIu32, node->latency_us);
    } else {
        text_format(text, "null");
    }
    text_format(text, ", \"fence\": ");
    if (node->fence) {
        text_format(text, "%" PRIu64, node->fence);
    } else {
        text_format(text, "null");
    }
    text_format(text, ", \"quarantine_ms\": ");
    if (node->quarantine_ms >= 0) {
        text_format(text, "%" PRId64, node->quarantine_ms);
    } else {
        text_format(text, "null");
    }
    text_format(text, ", \"error\": ");
    text_add_json(text, node->error);
    if (broken) text_format(text, ", \"broken\": %s", node->broken ? "true" : "false");
    text_format(text, "}");
}

void json_report(struct text *text, const char *key, const struct quorlock_report *report, bool broken)
{
    text_format(text, "{\"key\": ");
    text_add_json(text, key);
    text_format(text, ", \"quorum\": %" PRIu32 ", \"held\": %s, \"holder\": ", report->quorum,
                report->held ? "true" : "false");
    text_add_json(text, report->holder);
    text_format(text, ", \"valid_ms\": %" PRIu32 ", \"nodes\": [", report->valid_ms);
    for (size_t i = 0; i < report->n_nodes; i++) {
        if (i) text_format(text, ", ");
        json_node(text, report->nodes[i], broken);
    }
    text_format(text, "]}\n");
}
