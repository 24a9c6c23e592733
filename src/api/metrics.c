/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.c - statistics as text, in the format OpenMetrics or in the older format of Prometheus
 *
 * In the older format the name of a counter's family ends with _total, as those of its samples do, and there are
 * neither units nor an end mark. Numbers are written from integers, because printf would use the decimal point of the
 * locale.
 */
#include "api/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/owner.h"

#define SECOND_US       1000000u
#define LABEL_NAME_MAX  64
#define LABEL_VALUE_MAX 1024
#define LABEL_LETTERS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

#define REFUSE(error, ...) caller_fail(error, QUORLOCK_ERR_INVAL, __VA_ARGS__)

/* is_label_name - refuse the labels of our own samples, which would appear twice, and names of readers, as __name__. */
static bool is_label_name(const char *name)
{
    static const char *const own[] = {"le", "result", "reason", "node", "class"};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcmp(name, own[i]) == 0) return false;
    }
    return *name != '\0' && isdigit((unsigned char)*name) == 0 && strncmp(name, "__", 2) != 0 &&
           strlen(name) <= LABEL_NAME_MAX && strspn(name, LABEL_LETTERS) == strlen(name);
}

static int api_metrics_check_label(const char *name, const char *value, struct quorlock_error *error)
{
    if (name == NULL && value == NULL) return 0;
    if (name == NULL || value == NULL) {
        return REFUSE(error, "label_%s is NULL: a label has a name and a value", name == NULL ? "name" : "value");
    }
    if (!is_label_name(name)) {
        return REFUSE(
            error,
            "label_name is \"%.80s\": give 1 to %d letters, digits and _, neither a digit nor __ first, and not le, "
            "result, reason, node or class",
            name, LABEL_NAME_MAX);
    }
    if (strlen(value) > LABEL_VALUE_MAX) {
        return REFUSE(error, "label_value has %zu bytes: give at most %d", strlen(value), LABEL_VALUE_MAX);
    }
    return 0;
}

int metrics_options(struct quorlock_metrics_options *ret, const struct quorlock_metrics_options *given,
                    struct quorlock_error *error)
{
    int status;

    *ret = (struct quorlock_metrics_options){.size = sizeof(*ret)};
    if (given == NULL) return 0;
    status = caller_copy(ret, sizeof(*ret), given, given->size, "quorlock_metrics_options", error);
    if (status != 0) return status;
    if (ret->format != QUORLOCK_METRICS_OPENMETRICS && ret->format != QUORLOCK_METRICS_PROMETHEUS) {
        return REFUSE(error, "format is %d: it must be one of enum quorlock_metrics_format", ret->format);
    }
    return api_metrics_check_label(ret->label_name, ret->label_value, error);
}

/* ---- lines ---- */

struct label {
    const char *name, *value;
};

struct output {
    char *at;
    size_t size, length;
    const struct quorlock_metrics_options *options;
};

/* A family of samples with one name. */
struct family {
    const char *name, *type, *unit, *help; /* unit: NULL for none */
};

static void api_metrics_put(struct output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void api_metrics_put(struct output *output, const char *format, ...)
{
    size_t used = output->length < output->size ? output->length : output->size;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(output->size > 0 ? output->at + used : NULL, output->size - used, format, args);
    va_end(args);
    if (n > 0) output->length += (size_t)n;
}

/* put_escaped - write bytes that are not UTF-8 as \xNN: one such byte would make the whole text unreadable. */
static void put_escaped(struct output *output, const char *text)
{
    while (*text != '\0') {
        size_t step = owner_step(text);

        if (step == 1 && (unsigned char)*text >= 0x80) {
            api_metrics_put(output, "\\\\x%02x", (unsigned)(unsigned char)*text++);
            continue;
        }
        for (; step > 0; step--, text++) {
            bool newline = *text == '\n';

            api_metrics_put(output, "%s%c", newline || *text == '"' || *text == '\\' ? "\\" : "",
                            newline ? 'n' : *text);
        }
    }
}

static void put_label(struct output *output, const struct label *label, bool first)
{
    api_metrics_put(output, "%s%s=\"", first ? "{" : ",", label->name);
    put_escaped(output, label->value);
    api_metrics_put(output, "\"");
}

/* put_name - write the name of a sample with its labels, which end with a label without a name. */
static void put_name(struct output *output, const struct family *family, const char *suffix, const struct label *labels)
{
    const struct label own = {output->options->label_name, output->options->label_value};
    bool first = own.name == NULL;

    api_metrics_put(output, "%s%s", family->name, suffix);
    if (!first) put_label(output, &own, true);
    for (; labels->name != NULL; labels++, first = false) put_label(output, labels, first);
    api_metrics_put(output, first ? " " : "} ");
}

static bool is_counter(const struct family *family)
{
    return strcmp(family->type, "counter") == 0;
}

static void api_metrics_begin(struct output *output, const struct family *family)
{
    bool old = output->options->format == QUORLOCK_METRICS_PROMETHEUS;
    const char *suffix = old && is_counter(family) ? "_total" : "";

    api_metrics_put(output, "# TYPE %s%s %s\n", family->name, suffix, family->type);
    if (!old && family->unit != NULL) api_metrics_put(output, "# UNIT %s %s\n", family->name, family->unit);
    api_metrics_put(output, "# HELP %s%s %s\n", family->name, suffix, family->help);
}

static void put_number(struct output *output, const struct family *family, const struct label *labels, uint64_t number)
{
    put_name(output, family, is_counter(family) ? "_total" : "", labels);
    api_metrics_put(output, "%" PRIu64 "\n", number);
}

static void put_seconds(struct output *output, uint64_t us)
{
    api_metrics_put(output, "%" PRIu64 ".%06" PRIu64 "\n", us / SECOND_US, us % SECOND_US);
}

/* bound_text - write the bound of a bucket in seconds: "0.0003", "10.0", "+Inf". */
static const char *bound_text(uint64_t us, char *ret, size_t size)
{
    char *end;

    if (us == UINT64_MAX) return "+Inf";
    end = ret + snprintf(ret, size, "%" PRIu64 ".%06" PRIu64, us / SECOND_US, us % SECOND_US);
    while (end[-1] == '0' && end[-2] != '.') *--end = '\0';
    return ret;
}

/* put_histogram - write a histogram; the name of `label` is NULL for none. */
static void put_histogram(struct output *output, const struct family *family, struct label label,
                          const struct quorlock_histogram *histogram)
{
    uint64_t sum = 0;
    char bound[32];

    for (size_t i = 0; i < histogram->n_buckets; i++) {
        struct label le = {"le", bound_text(histogram->bounds_us[i], bound, sizeof(bound))};
        struct label labels[] = {label.name != NULL ? label : le, label.name != NULL ? le : label, {NULL, NULL}};

        sum += histogram->buckets[i];
        put_name(output, family, "_bucket", labels);
        api_metrics_put(output, "%" PRIu64 "\n", sum);
    }
    put_name(output, family, "_count", (struct label[]){label, {NULL, NULL}});
    api_metrics_put(output, "%" PRIu64 "\n", histogram->count);
    put_name(output, family, "_sum", (struct label[]){label, {NULL, NULL}});
    put_seconds(output, histogram->sum_us);
}

/* ---- of the locks ---- */

static const struct label no_label[] = {{NULL, NULL}};

/* result_text - write the name of a status in small letters. */
static const char *result_text(int status, char *ret, size_t size)
{
    size_t i = 0;

    for (const char *name = quorlock_status_name(status); *name != '\0' && i + 1 < size; name++) {
        ret[i++] = (char)tolower((unsigned char)*name);
    }
    ret[i] = '\0';
    return ret;
}

static void put_acquires(struct output *output, const struct quorlock_statistics *statistics)
{
    static const struct family family = {"quorlock_acquire_duration_seconds", "histogram", "seconds",
                                         "Time from the call of an acquire to its end, by its result."};
    char result[32];

    api_metrics_begin(output, &family);
    /* Empty histograms are left out, except the first: there are many statuses. */
    for (size_t i = 0; i < statistics->n_acquires; i++) {
        if (i > 0 && statistics->acquires[i]->count == 0) continue;
        put_histogram(output, &family, (struct label){"result", result_text(-(int)i, result, sizeof(result))},
                      statistics->acquires[i]);
    }
}

static void put_holds(struct output *output, const struct quorlock_statistics *statistics)
{
    static const struct family family = {"quorlock_hold_duration_seconds", "histogram", "seconds",
                                         "Time from a grant until the lock was released or lost."};

    api_metrics_begin(output, &family);
    put_histogram(output, &family, no_label[0], statistics->holds);
}

static void put_losses(struct output *output, const struct quorlock_statistics *statistics)
{
    static const char *const reasons[] = {[QUORLOCK_LOSS_EXPIRED] = "expired",
                                          [QUORLOCK_LOSS_GONE] = "gone",
                                          [QUORLOCK_LOSS_MAX_HOLD] = "max_hold",
                                          [QUORLOCK_LOSS_NOT_RENEWED] = "not_renewed",
                                          [QUORLOCK_LOSS_CLOCK] = "clock"};
    static const struct family family = {"quorlock_losses", "counter", NULL,
                                         "Locks that were lost while they were held, by the reason."};

    api_metrics_begin(output, &family);
    for (size_t i = 1; i < statistics->n_losses; i++) {
        put_number(output, &family, (struct label[]){{"reason", reasons[i]}, {NULL, NULL}}, statistics->losses[i]);
    }
}

static void put_renewals(struct output *output, const struct quorlock_statistics *statistics)
{
    static const struct family family = {"quorlock_renewals", "counter", NULL,
                                         "Renewals of held locks, by whether a quorum of nodes renewed."};

    api_metrics_begin(output, &family);
    put_number(output, &family, (struct label[]){{"result", "ok"}, {NULL, NULL}}, statistics->renewals);
    put_number(output, &family, (struct label[]){{"result", "noquorum"}, {NULL, NULL}}, statistics->renewals_failed);
}

static void put_plain(struct output *output, const struct quorlock_statistics *statistics)
{
    const struct {
        struct family family;
        uint64_t number;
    } rows[] = {
        {{"quorlock_degradations", "counter", NULL, "Renewals that found that not all nodes hold the lock any more."},
         statistics->degradations},
        {{"quorlock_held", "gauge", NULL, "Locks that are held."}, statistics->held},
        {{"quorlock_degraded", "gauge", NULL, "Locks that are held, but not by all nodes."}, statistics->degraded},
        {{"quorlock_waiting", "gauge", NULL, "Acquires that have not ended yet."}, statistics->waiting},
        {{"quorlock_requests_in_flight", "gauge", NULL, "Requests without an answer so far."}, statistics->in_flight},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        api_metrics_begin(output, &rows[i].family);
        put_number(output, &rows[i].family, no_label, rows[i].number);
    }
}

/* ---- of the nodes ---- */

static uint64_t is_up(const struct quorlock_node_statistics *node)
{
    return node->state == QUORLOCK_NODE_STATE_READY || node->state == QUORLOCK_NODE_STATE_QUARANTINED;
}

static uint64_t requests(const struct quorlock_node_statistics *node)
{
    return node->requests;
}

static uint64_t reconnects(const struct quorlock_node_statistics *node)
{
    return node->reconnects;
}

static uint64_t bytes_in(const struct quorlock_node_statistics *node)
{
    return node->bytes_in;
}

static uint64_t bytes_out(const struct quorlock_node_statistics *node)
{
    return node->bytes_out;
}

static void put_node_numbers(struct output *output, const struct quorlock_statistics *statistics)
{
    static const struct {
        struct family family;
        uint64_t (*number)(const struct quorlock_node_statistics *);
    } rows[] = {
        {{"quorlock_node_up", "gauge", NULL, "Whether the node takes requests; in quarantine its votes are ignored."},
         is_up},
        {{"quorlock_node_requests", "counter", NULL, "Requests that were sent to the node."}, requests},
        {{"quorlock_node_reconnects", "counter", NULL, "Connections to the node, except the first."}, reconnects},
        {{"quorlock_node_received_bytes", "counter", "bytes", "Bytes that came from the node."}, bytes_in},
        {{"quorlock_node_sent_bytes", "counter", "bytes", "Bytes that were sent to the node."}, bytes_out},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        api_metrics_begin(output, &rows[i].family);
        for (size_t k = 0; k < statistics->n_nodes; k++) {
            put_number(output, &rows[i].family, (struct label[]){{"node", statistics->nodes[k]->node}, {NULL, NULL}},
                       rows[i].number(statistics->nodes[k]));
        }
    }
}

static void put_quarantines(struct output *output, const struct quorlock_statistics *statistics)
{
    static const struct family family = {
        "quorlock_node_quarantine_seconds", "gauge", "seconds",
        "How long the votes of the node will still be ignored; 0 outside of quarantine."};

    api_metrics_begin(output, &family);
    for (size_t i = 0; i < statistics->n_nodes; i++) {
        put_name(output, &family, "", (struct label[]){{"node", statistics->nodes[i]->node}, {NULL, NULL}});
        put_seconds(output, statistics->nodes[i]->quarantine_ms * 1000);
    }
}

static void put_round_trips(struct output *output, const struct quorlock_statistics *statistics)
{
    static const struct family family = {"quorlock_node_round_trip_seconds", "histogram", "seconds",
                                         "Time from a request to the node's answer."};

    api_metrics_begin(output, &family);
    for (size_t i = 0; i < statistics->n_nodes; i++) {
        put_histogram(output, &family, (struct label){"node", statistics->nodes[i]->node},
                      statistics->nodes[i]->round_trips);
    }
}

static void put_errors(struct output *output, const struct quorlock_statistics *statistics)
{
    static const char *const classes[] = {
        [QUORLOCK_NODE_ERROR_UNREACHABLE] = "unreachable",
        [QUORLOCK_NODE_ERROR_TIMEOUT] = "timeout",
        [QUORLOCK_NODE_ERROR_TEMPORARY] = "temporary",
        [QUORLOCK_NODE_ERROR_REPLICA] = "replica",
        [QUORLOCK_NODE_ERROR_CLUSTER] = "cluster",
        [QUORLOCK_NODE_ERROR_AUTH] = "auth",
        [QUORLOCK_NODE_ERROR_REFUSED] = "refused",
        [QUORLOCK_NODE_ERROR_FOREIGN] = "foreign",
        [QUORLOCK_NODE_ERROR_PROTO] = "protocol",
        [QUORLOCK_NODE_ERROR_OTHER] = "other",
        [QUORLOCK_NODE_ERROR_LIMIT] = "limit",
        [QUORLOCK_NODE_ERROR_CONFIG] = "config",
        [QUORLOCK_NODE_ERROR_GUARD] = "guard",
        [QUORLOCK_NODE_ERROR_LOGIN] = "login",
    };
    static const struct family family = {"quorlock_node_errors", "counter", NULL,
                                         "Requests, connections and attempts to connect that failed, by the reason."};

    api_metrics_begin(output, &family);
    for (size_t i = 0; i < statistics->n_nodes; i++) {
        const struct quorlock_node_statistics *node = statistics->nodes[i];

        for (size_t k = 1; k < node->n_errors; k++) {
            put_number(output, &family, (struct label[]){{"node", node->node}, {"class", classes[k]}, {NULL, NULL}},
                       node->errors[k]);
        }
    }
}

size_t metrics_write(const struct quorlock_statistics *statistics, const struct quorlock_metrics_options *options,
                     char *ret, size_t size)
{
    struct output output = {.at = ret, .size = size, .options = options};

    if (size > 0) ret[0] = '\0';
    put_acquires(&output, statistics);
    put_holds(&output, statistics);
    put_losses(&output, statistics);
    put_renewals(&output, statistics);
    put_plain(&output, statistics);
    put_node_numbers(&output, statistics);
    put_quarantines(&output, statistics);
    put_round_trips(&output, statistics);
    put_errors(&output, statistics);
    if (options->format == QUORLOCK_METRICS_OPENMETRICS) api_metrics_put(&output, "# EOF\n");
    return output.length;
}
