/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ours.c - usage: ours plain|redisson majority|all NODE...
 *
 * SLOT acquire KEY LEASE_MS WAIT_MS     acquired OWNER | refused STATUS TEXT
 * SLOT release                          released | released expired
 * SLOT valid                            valid MS
 * SLOT contend KEY LEASE_MS FILE MS       contended TURNS LATE
 * SLOT bare - - FILE MS                 the same without the lock
 *
 * and, whenever it comes: lost TEXT. Locks are renewed. The end of stdin releases everything and ends it.
 */
#include "ours.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS_MAX 64
#define WORDS_MAX 6

static struct {
    struct event_base *base;
    struct event *input;
    quorlock_client *client;
    struct slot slots[SLOTS_MAX];
    size_t n_slots;
    char line[4096];
    size_t length;
} ours;

void say(const struct slot *slot, const char *format, ...)
{
    va_list arguments;

    printf("%s ", slot->name);
    va_start(arguments, format);
    (void)vprintf(format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static uint32_t number(const char *text)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);

    if (*text == '\0' || *end != '\0' || value > UINT32_MAX) die("'%s' is no number", text);
    return (uint32_t)value;
}

static struct slot *slot_named(const char *name)
{
    struct slot *slot;

    for (size_t i = 0; i < ours.n_slots; i++) {
        if (strcmp(ours.slots[i].name, name) == 0) return &ours.slots[i];
    }
    if (ours.n_slots == SLOTS_MAX || strlen(name) > SLOT_NAME_MAX) die("no slot for '%s'", name);
    slot = &ours.slots[ours.n_slots++];
    (void)snprintf(slot->name, sizeof(slot->name), "%s", name);
    slot->base = ours.base;
    slot->client = ours.client;
    return slot;
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    say(arg, "lost %s", loss->text);
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    if (result->status == QUORLOCK_OK) {
        say(arg, "acquired %s", result->token);
    } else {
        say(arg, "refused %s %s", quorlock_status_name(result->status), result->text);
    }
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    if (result->status != QUORLOCK_OK && result->status != QUORLOCK_ERR_LOST) die("release: %s", result->text);
    say(arg, result->status == QUORLOCK_ERR_LOST ? "released expired" : "released");
}

void slot_lock(struct slot *slot, const char *key, uint32_t lease_ms, uint32_t wait_ms)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = lease_ms, .wait_ms = wait_ms};

    quorlock_lock_free(slot->lock);
    slot->lock = NULL;
    if (quorlock_lock_new(&slot->lock, slot->client, &key, 1, &options) != 0) {
        die("%s", quorlock_client_error(slot->client));
    }
    quorlock_lock_set_on_lost(slot->lock, on_lost, slot);
}

static void obey(struct slot *slot, const char *verb, char **words, size_t n_words)
{
    int failed = 0;

    if (strcmp(verb, "acquire") == 0 && n_words == 3) {
        slot_lock(slot, words[0], number(words[1]), number(words[2]) > 0 ? number(words[2]) : QUORLOCK_TRY_ONCE);
        failed = quorlock_lock_acquire(slot->lock, on_acquired, slot);
    } else if (strcmp(verb, "release") == 0 && n_words == 0) {
        failed = quorlock_lock_release(slot->lock, on_released, slot);
    } else if (strcmp(verb, "valid") == 0 && n_words == 0) {
        say(slot, "valid %" PRIu32, quorlock_lock_valid_ms(slot->lock));
    } else if (strcmp(verb, "contend") == 0 && n_words == 4) {
        contention_start(slot, words[0], number(words[1]), words[2], number(words[3]));
    } else if (strcmp(verb, "bare") == 0 && n_words == 4) {
        contention_start(slot, NULL, 0, words[2], number(words[3]));
    } else {
        die("no such order: %s", verb);
    }
    if (failed != 0) die("%s: %s", verb, quorlock_client_error(slot->client));
}

static void read_order(char *line)
{
    char *words[WORDS_MAX + 1];
    char *rest = NULL;
    size_t n_words = 0;

    for (char *word = strtok_r(line, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (n_words > WORDS_MAX) die("too many words in an order");
        words[n_words++] = word;
    }
    if (n_words < 2) die("an order is 'SLOT VERB ...'");
    obey(slot_named(words[0]), words[1], words + 2, n_words - 2);
}

static void on_closed(void *base)
{
    event_base_loopbreak(base);
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    ssize_t got = read(fd, ours.line + ours.length, sizeof(ours.line) - 1 - ours.length);
    char *end;

    if (got <= 0) {
        event_del(ours.input);
        quorlock_client_close(ours.client, on_closed, ours.base);
        return;
    }
    ours.length += (size_t)got;
    ours.line[ours.length] = '\0';
    while ((end = strchr(ours.line, '\n')) != NULL) {
        *end++ = '\0';
        read_order(ours.line);
        ours.length -= (size_t)(end - ours.line);
        memmove(ours.line, end, ours.length + 1);
    }
    if (ours.length == sizeof(ours.line) - 1) die("too long an order");
}

static void on_log(int level, const char *text, void *arg)
{
    if (level >= QUORLOCK_LOG_INFO) fprintf(stderr, "quorlock: %s\n", text);
}

static void open_client(const char *dialect, const char *policy, char **nodes, size_t n_nodes)
{
    struct quorlock_error error;
    struct quorlock_client_options options = {
        .size = sizeof(options),
        .nodes = (const char *const *)nodes,
        .n_nodes = n_nodes,
        .policy = strcmp(policy, "all") == 0 ? QUORLOCK_POLICY_ALL : QUORLOCK_POLICY_MAJORITY,
        .dialect = strcmp(dialect, "redisson") == 0 ? QUORLOCK_DIALECT_REDISSON : QUORLOCK_DIALECT_PLAIN,
        .max_lease_ms = 120000, /* as peer_case.py sets up the nodes */
        .log = on_log,
    };

    if (quorlock_client_new(&ours.client, ours.base, &options, &error) != 0) die("%s", error.text);
}

int main(int argc, char **argv)
{
    struct event_config *config = event_config_new();

    if (argc < 4) die("usage: ours plain|redisson majority|all NODE...");
    if (config == NULL || event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) != 0) die("no loop");
    ours.base = event_base_new_with_config(config);
    event_config_free(config);
    if (ours.base == NULL) die("no loop");
    srand((unsigned)getpid());
    open_client(argv[1], argv[2], argv + 3, (size_t)(argc - 3));
    ours.input = event_new(ours.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, NULL);
    if (ours.input == NULL || event_add(ours.input, NULL) != 0) die("no event for stdin");
    printf("- ready quorlock %s\n", quorlock_version());
    fflush(stdout);
    event_base_dispatch(ours.base);
    event_free(ours.input);
    event_base_free(ours.base);
    return 0;
}
