/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acquire.c - quorlock acquire, renew and release: a lock for several commands, which hand its token on
 *
 * acquire holds the lock for a moment, shows its token and detaches. renew and release adopt the token; renew detaches
 * again.
 */
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "cli.h"
#include "document.h"
#include "file.h"
#include "report.h"
#include "say.h"
#include "signals.h"

#define TOKEN_SIZE  256  /* longer than any token */
#define SPREAD_MS   1000 /* the nodes that lack the lock may take so long to get it */
#define SPREAD_LOOK 20L  /* when to look again, in ms */

static const struct timeval look_pause = {.tv_usec = SPREAD_LOOK * 1000};

enum step_kind { STEP_ACQUIRE, STEP_RENEW, STEP_RELEASE };

struct step {
    struct session session;
    const struct settings *settings;
    enum step_kind kind;
    size_t n_keys; /* of the words; with renew and release the last word may be the token */
    char *name;    /* all keys, for messages */
    char token[TOKEN_SIZE];
    uint64_t fence;
    quorlock_lock *lock;
    struct event *look; /* whether all nodes have the lock, and then whether standard output has room */
    uint32_t looks;
    bool full; /* standard output has no room for the token */
    struct signals signals;
    struct event *on_signals;
    bool asking; /* the nodes are asked for the lock */
    int signal;  /* that ended the wait */
    bool typed;
};

static void step_leave(struct step *step, int status)
{
    step->session.status = step->signal != 0 ? EXIT_SIGNAL + step->signal : status;
    session_leave(&step->session);
}

/* ---- the token's file ---- */

static int step_read_token(struct step *step)
{
    const char *path = step->settings->token_file;
    FILE *file = fopen(path, "re");
    bool read = file != NULL && fgets(step->token, sizeof(step->token), file) != NULL;

    if (!read) say("--token-file: cannot read \"%s\": %s", path, file == NULL ? strerror(errno) : "it is empty");
    if (file != NULL) fclose(file);
    step->token[strcspn(step->token, "\r\n")] = '\0';
    return read ? 0 : EXIT_USAGE;
}

static int step_file_failed(const struct step *step)
{
    say("--token-file: cannot write \"%s\": %s", step->settings->token_file, file_why());
    return EXIT_OUTPUT;
}

/* Whoever reads the token can release the lock, so only this user may. */
static int step_write_token(const struct step *step, const char *token)
{
    char line[TOKEN_SIZE + 1];
    int length = snprintf(line, sizeof(line), "%s\n", token);
    bool written = file_write(step->settings->token_file, S_IRUSR | S_IWUSR, line, (size_t)length);

    return written ? 0 : step_file_failed(step);
}

/* ---- results ---- */

static json_t *step_keys(const struct step *step)
{
    json_t *keys = json_array();

    for (size_t i = 0; i < step->n_keys; i++) document_append(&keys, document_text(step->settings->words[i]));
    return keys;
}

/* Show what the next step needs; token: NULL: it is in a file, or the caller has it. */
static int step_show(const struct step *step, const char *token, uint64_t fence, uint32_t valid_ms)
{
    struct text text = {0};
    json_t *document;

    if (step->settings->json) {
        document = json_object();
        document_add(&document, "keys", step_keys(step));
        document_add(&document, "token", document_text(token));
        document_add(&document, "fence", document_number((int64_t)fence, 1));
        document_add(&document, "valid_ms", document_number(valid_ms, 0));
        document_write(&text, document);
    } else if (step->kind == STEP_ACQUIRE) {
        if (token != NULL) text_format(&text, "%s", token);
        if (fence != 0) text_format(&text, "%s%" PRIu64, token != NULL ? " " : "", fence);
        if (text.length > 0) text_format(&text, "\n");
    }
    return put(&text);
}

static int step_show_released(const struct step *step, bool expired)
{
    struct text text = {0};
    json_t *document = json_object();

    document_add(&document, "keys", step_keys(step));
    document_add(&document, "expired", document_truth(expired));
    document_write(&text, document);
    return put(&text);
}

static void step_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct step *step = arg;
    int status = session_exit(result->status);
    bool lost = result->status == QUORLOCK_ERR_LOST;

    (void)lock;
    if (step->kind != STEP_RELEASE) {
        step_leave(step, step->session.status);
        return;
    }
    report_released(step->settings, step->name, result);
    if (step->settings->json && (status == 0 || lost)) {
        int shown = step_show_released(step, lost);

        if (status == 0) status = shown;
    }
    step_leave(step, status);
}

static void step_release(struct step *step, int status)
{
    step->session.status = status;
    if (quorlock_lock_release(step->lock, step_released, step) != 0) step_leave(step, status);
}

/* step_awaits_reader - return whether standard output is full, and look again a little later. A write would hang past
 * the lease, deaf to signals. */
static bool step_awaits_reader(struct step *step)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};

    step->full = (step->kind == STEP_ACQUIRE || step->settings->json) && poll(&output, 1, 0) == 0;
    return step->full && evtimer_add(step->look, &look_pause) == 0;
}

/* Hand on what the next step needs: 0, or the exit status after a message. */
static int step_hand_on(const struct step *step, uint32_t valid_ms)
{
    bool acquired = step->kind == STEP_ACQUIRE, filed = step->settings->token_file != NULL;
    int status = acquired && filed ? step_write_token(step, step->token) : 0;

    if (status != 0) return status;
    return step_show(step, acquired && !filed ? step->token : NULL, step->fence, valid_ms);
}

/* What is shown must be worth something: so the lock is detached last. */
static void step_pass_on(struct step *step)
{
    bool acquired = step->kind == STEP_ACQUIRE;
    const char *token = NULL;
    uint32_t valid_ms = quorlock_lock_valid_ms(step->lock);
    int status = 0;

    if (valid_ms > 0 && step_awaits_reader(step)) return;
    if (valid_ms > 0) status = step_hand_on(step, valid_ms);
    if (status != 0 && acquired) {
        step_release(step, status);
        return;
    }
    if (quorlock_lock_detach(step->lock, &token, NULL, &valid_ms) != 0) {
        say("lost \"%s\": its lease ended before its token was handed on", step->name);
        step_release(step, EXIT_LOST);
        return;
    }
    if (step->settings->verbose > 0)
        say_at(LOG_INFO, "%s \"%s\", valid %u ms", acquired ? "acquired" : "renewed", step->name, valid_ms);
    step_leave(step, status);
}

/* ---- all nodes ---- */

static void step_go_on(struct step *step)
{
    if (step->kind == STEP_RELEASE || (step->kind == STEP_ACQUIRE && step->signal != 0)) {
        step_release(step, 0);
    } else {
        step_pass_on(step);
    }
}

static bool step_is_connecting(const struct step *step)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    if (quorlock_client_statistics(step->session.client, &statistics) != 0) return false;
    for (size_t i = 0; i < statistics.n_nodes; i++) {
        if (statistics.nodes[i]->state == QUORLOCK_NODE_STATE_CONNECTING) return true;
    }
    return false;
}

/* A node that has failed is not waited for. */
static bool step_is_everywhere(const struct quorlock_result *result)
{
    for (size_t i = 0; i < result->n_votes; i++) {
        int outcome = result->votes[i]->outcome;

        if (outcome == QUORLOCK_VOTE_NONE || outcome == QUORLOCK_VOTE_PENDING || outcome == QUORLOCK_VOTE_MISSING)
            return false;
    }
    return true;
}

/* Look again a little later, for a while. */
static bool step_waits(struct step *step)
{
    return step->signal == 0 && step->looks++ < SPREAD_MS / SPREAD_LOOK && evtimer_add(step->look, &look_pause) == 0;
}

static void step_spread(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct step *step = arg;
    bool done = result->status != QUORLOCK_OK || step_is_everywhere(result);

    (void)lock;
    if (done || !step_waits(step)) step_go_on(step);
}

/*
 * Between the steps nothing renews the lock, so nothing repairs it: on a bare quorum of the nodes it would end with any
 * of them. So it is extended until the nodes have it that were still connecting, or have lost it. And a release before
 * that would leave it, for its whole lease, on a node that was still connecting.
 */
static void step_look(evutil_socket_t fd, short what, void *arg)
{
    struct step *step = arg;

    (void)fd;
    (void)what;
    if (!step->full && step_is_connecting(step) && step_waits(step)) return;
    if (step->full || step->signal != 0 || quorlock_lock_extend(step->lock, 0, step_spread, step) != 0)
        step_go_on(step);
}

static int step_refused(const struct step *step, const struct quorlock_result *result)
{
    bool adopts = step->kind != STEP_ACQUIRE;

    if (step->signal != 0) return EXIT_SIGNAL + step->signal;
    if (result->status == QUORLOCK_ERR_LOST) {
        say("%s", result->text);
        if (step->kind == STEP_RELEASE && step->settings->json && step_show_released(step, true) != 0)
            return EXIT_OUTPUT;
        return EXIT_LOST;
    }
    if (!adopts && report_is_held(step->settings, result)) {
        if (!step->settings->quiet) report_held(step->settings, result);
        return (int)step->settings->held_status;
    }
    say("cannot %s \"%s\": %s%s",
        step->kind == STEP_ACQUIRE ? "lock"
        : step->kind == STEP_RENEW ? "renew"
                                   : "release",
        step->name,
        result->status == QUORLOCK_ERR_INVAL ? "the nodes refuse the settings of this client"
                                             : quorlock_status_text(result->status),
        adopts ? "; it may still be held until its lease ends" : "");
    report_votes(result->votes, result->n_votes);
    return session_refused(result->status);
}

static void step_answered(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct step *step = arg;

    step->asking = false;
    if (result->status != QUORLOCK_OK) {
        step_leave(step, step_refused(step, result));
    } else {
        snprintf(step->token, sizeof(step->token), "%s", result->token);
        step->fence = result->fence;
        step_spread(lock, result, step);
    }
}

/* ---- the work ---- */

static void step_signaled(evutil_socket_t fd, short what, void *arg)
{
    struct step *step = arg;
    bool typed = false;

    (void)fd;
    (void)what;
    for (int number; (number = signals_next(&step->signals, &typed)) != 0;) {
        if (number == SIGTSTP) signals_stop();
        if (step->signal != 0 || !signals_end_wait(number)) continue;
        step->signal = number;
        step->typed = typed;
        /* A release goes on: its callback comes within the node timeout. */
        if (step->asking) (void)quorlock_lock_cancel(step->lock);
    }
}

static int step_ask(struct step *step)
{
    const struct settings *settings = step->settings;
    struct quorlock_lock_options options = {.size = sizeof(options),
                                            .lease_ms = session_lease_ms(settings),
                                            .wait_ms = settings->values.wait_ms,
                                            .renew_ms = QUORLOCK_RENEW_NEVER,
                                            .fencing = settings->values.fence != 0};
    int status;

    step->look = evtimer_new(step->session.base, step_look, step);
    if (step->look == NULL) return session_check(&step->session, QUORLOCK_ERR_NOMEM);
    status = quorlock_lock_new(&step->lock, step->session.client, settings->words, step->n_keys, &options);

    if (status == 0) {
        status = step->kind == STEP_ACQUIRE ? quorlock_lock_acquire(step->lock, step_answered, step)
                                            : quorlock_lock_adopt(step->lock, step->token, step_answered, step);
    }
    step->asking = status == 0;
    return session_check(&step->session, status);
}

static int step_watch_signals(struct step *step)
{
    if (!signals_open(&step->signals)) {
        say("cannot watch signals: %s", strerror(errno));
        return EXIT_SYSTEM;
    }
    step->on_signals = event_new(step->session.base, step->signals.fd, EV_READ | EV_PERSIST, step_signaled, step);
    if (step->on_signals != NULL && event_add(step->on_signals, NULL) == 0) return 0;
    say("out of memory");
    return EXIT_SYSTEM;
}

/* Take the token from its file, or from the last word. acquire checks the file to be written before there is a lock. */
static int step_find_token(struct step *step, const char *verb)
{
    const struct settings *settings = step->settings;
    size_t n_words = settings->n_words;

    step->n_keys = n_words;
    if (step->kind == STEP_ACQUIRE) {
        return settings->token_file == NULL || file_check(settings->token_file) ? 0 : step_file_failed(step);
    }
    if (settings->token_file != NULL) return step_read_token(step);
    if (n_words < 2) {
        say("no token: give quorlock %s KEY... TOKEN, or --token-file FILE, which acquire has written", verb);
        return EXIT_USAGE;
    }
    step->n_keys = n_words - 1;
    snprintf(step->token, sizeof(step->token), "%s", settings->words[n_words - 1]);
    return 0;
}

static int step_run(const struct settings *settings, enum step_kind kind, const char *verb)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct step step;
    int status;

    step = (struct step){.settings = settings, .kind = kind, .signals.fd = -1};
    if (settings->values.client.dialect == QUORLOCK_DIALECT_REDISSON) {
        say("--dialect redisson: %s hands a lock on by its token, which only the plain dialect can: use that dialect",
            verb);
        return EXIT_USAGE;
    }
    status = step_find_token(&step, verb);
    if (status != 0) return status;
    step.name = text_joined(settings->words, step.n_keys, ", ");
    if (step.name == NULL) return EXIT_SYSTEM;
    status = session_open(&step.session, settings);
    if (status == 0) status = step_watch_signals(&step);
    if (status == 0) sources_forget(settings->sources, &settings->values);
    if (step.session.base != NULL) status = session_run(&step.session, status != 0 ? status : step_ask(&step));
    if (step.typed && status == EXIT_SIGNAL + step.signal) signals_die(step.signal, false);
    free(step.name);
    return status;
}

int verb_acquire(const struct settings *settings)
{
    return step_run(settings, STEP_ACQUIRE, "acquire");
}

int verb_renew(const struct settings *settings)
{
    return step_run(settings, STEP_RENEW, "renew");
}

int verb_release(const struct settings *settings)
{
    return step_run(settings, STEP_RELEASE, "release");
}
