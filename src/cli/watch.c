/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.c - quorlock watch: show who holds keys, node by node, at each change
 *
 * Each node is asked separately, so a frozen node does not delay the others. A round asks all nodes for one key.
 * Several keys take turns, so that no node gets more than a few commands a second. A key is judged when the nodes that
 * are up have answered, or a moment later if one of them does not answer.
 */
#include <event2/event.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "output.h"
#include "report.h"
#include "say.h"
#include "screen.h"
#include "signals.h"
#include "warden.h"
#include "watch_show.h"
#include "watch_state.h"

enum { INTERVAL_MS = 1000, SETTLE_MS_MAX = 200, DRAW_MS = 250 };

struct watch;

/* A request to one node for one key. */
struct query {
    struct watch *watch;
    size_t key, node;
    bool pending;
    uint64_t asked_us;
};

/* The round of a key. */
struct watch_round {
    struct watch *watch;
    size_t key;
    struct query queries[QUORLOCK_NODES_MAX];
    struct event *settle; /* judges without the missing answers */
    bool open, overdue;
    uint32_t judged; /* number of rounds so far */
};

struct watch {
    struct session session;
    struct settings settings;
    struct watch_state state;
    struct watch_round *rounds; /* one for each key */
    size_t turn;                /* the next key */
    struct signals signals;
    struct output output;
    struct event *on_signal, *on_tick, *on_draw, *on_typed, *on_room, *on_closed;
    bool table, live;
    struct text lines[WATCH_LINES_KEPT]; /* the latest events, newest first */
    size_t n_lines;
    int signal;
    bool typed, ended;
};

/* ---- time ---- */

static struct watch_time read_time(void)
{
    struct watch_time time = {.now_us = warden_now_us()};

    clock_gettime(CLOCK_REALTIME, &time.of_day);
    return time;
}

/* step_ms - return the time from the round of one key to that of the next. */
static uint32_t step_ms(const struct watch *watch)
{
    uint32_t ms = watch->settings.interval_ms / (uint32_t)watch->state.n_keys;

    return ms > WATCH_INTERVAL_MS_MIN ? ms : WATCH_INTERVAL_MS_MIN;
}

/* ---- the end ---- */

static void watch_end(struct watch *watch, int status)
{
    if (watch->ended) return;
    watch->ended = true;
    watch->session.status = status;
    session_leave(&watch->session);
}

static void end_without_memory(struct watch *watch)
{
    screen_leave();
    if (!watch->ended) say("out of memory");
    watch_end(watch, EXIT_SYSTEM);
}

/* end_by - end with the exit status of that signal. */
static void end_by(struct watch *watch, int number, bool typed)
{
    watch->signal = number;
    watch->typed = typed;
    watch_end(watch, EXIT_SIGNAL + number);
}

/* status_of - return 0 if a quorum answered for every key, else an exit status. */
static int status_of(const struct watch *watch)
{
    for (size_t i = 0; i < watch->state.n_keys; i++)
        if (watch->state.keys[i].verdict == WATCH_UNKNOWN) return EXIT_NO_QUORUM;
    return EXIT_OK;
}

static bool has_all_rounds(const struct watch *watch)
{
    if (watch->settings.count == 0) return false;
    for (size_t i = 0; i < watch->state.n_keys; i++)
        if (watch->rounds[i].judged < watch->settings.count) return false;
    return true;
}

/* ---- output ---- */

static void watch_flush(struct watch *watch)
{
    if (output_write(&watch->output)) {
        if (has_all_rounds(watch)) watch_end(watch, status_of(watch));
    } else if (errno == EAGAIN) {
        if (event_add(watch->on_room, NULL) != 0) end_without_memory(watch);
    } else if (errno == ENOMEM) {
        end_without_memory(watch);
    } else if (errno == EPIPE) {
        end_by(watch, SIGPIPE, false);
    } else if (errno == EIO && watch->table) {
        end_by(watch, SIGHUP, false);
    } else {
        int why = errno;

        screen_leave();
        if (!watch->ended) say("cannot write to standard output: %s", strerror(why));
        watch_end(watch, EXIT_OUTPUT);
    }
}

static void watch_on_room(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    watch_flush(arg);
}

/* watch_on_closed - end if the reader has ended. Without changes nothing is written, so no write would show that. */
static void watch_on_closed(evutil_socket_t fd, short what, void *arg)
{
    struct watch *watch = arg;

    (void)fd;
    (void)what;
    if (output_has_reader(&watch->output)) {
        event_del(watch->on_closed);
    } else {
        end_by(watch, SIGPIPE, false);
    }
}

static struct watch_look look_of(const struct watch *watch)
{
    struct screen_size size = screen_size();

    return (struct watch_look){.rows = watch->live ? size.rows : 0,
                               .columns = size.columns,
                               .colors = screen_has_colors(),
                               .bars = screen_has_bars(),
                               .live = watch->live,
                               .interval_ms = watch->settings.interval_ms,
                               .lines = watch->lines,
                               .n_lines = watch->n_lines};
}

static void watch_draw(struct watch *watch)
{
    struct watch_time time = read_time();
    struct watch_look look = look_of(watch);
    struct text picture = {0};

    /* A terminal that takes nothing now gets the newest picture later. */
    if (!screen_is_entered() || watch->output.waiting.length > 0 || watch->ended) return;
    screen_begin(&picture);
    watch_table(&picture, &watch->state, &look, &time);
    screen_end(&picture);
    output_add(&watch->output, &picture);
    watch_flush(watch);
}

static void keep_line(struct watch *watch, struct text *line)
{
    text_clear(&watch->lines[WATCH_LINES_KEPT - 1]);
    memmove(&watch->lines[1], &watch->lines[0], (WATCH_LINES_KEPT - 1) * sizeof(watch->lines[0]));
    watch->lines[0] = *line;
    if (watch->n_lines < WATCH_LINES_KEPT) watch->n_lines++;
}

static void on_event(void *arg, const struct watch_event *event)
{
    struct watch *watch = arg;
    struct watch_time time = read_time();
    struct text line = {0};

    if (watch->settings.json) {
        watch_json(&line, &watch->state, event, &time);
        output_add(&watch->output, &line);
    } else if (event->type == WATCH_RENEWED && watch->settings.verbose <= 0) {
        return;
    } else {
        watch_line(&line, &watch->state, event, &time);
        if (watch->table) {
            keep_line(watch, &line);
        } else {
            text_format(&line, "\n");
            output_add(&watch->output, &line);
        }
    }
}

/* ---- rounds ---- */

/* is_waited_for - return whether the round waits for an answer. It does not wait for nodes that are down. */
static bool is_waited_for(const struct watch_round *round)
{
    const struct watch_state *state = &round->watch->state;

    for (size_t i = 0; i < state->n_nodes; i++)
        if (round->queries[i].pending && (!state->nodes[i].asked || state->nodes[i].up)) return true;
    return false;
}

static void watch_judge_round(struct watch_round *round)
{
    struct watch *watch = round->watch;

    round->judged += round->open;
    round->open = false;
    event_del(round->settle);
    watch_judge(&watch->state, round->key, read_time().now_us);
    watch_draw(watch);
    watch_flush(watch);
}

/* judge_if_due - judge the key at the end of its round. The first round waits for a quorum of answers, if it can still
 * come; an only round waits for all answers. An answer that is too late for a round is judged at once. */
static void judge_if_due(struct watch_round *round)
{
    const struct watch_state *state = &round->watch->state;
    const struct watch_key *key = &state->keys[round->key];
    size_t n_answers = 0;
    bool once = round->watch->settings.count == 1, due;

    for (size_t i = 0; i < state->n_nodes; i++) n_answers += key->votes[i].answer != WATCH_SILENT;
    due = round->overdue && (round->judged > 0 || (!once && state->quorum > 0 && n_answers >= state->quorum));
    if (due || (round->open && !is_waited_for(round))) watch_judge_round(round);
}

static void on_settle(evutil_socket_t fd, short what, void *arg)
{
    struct watch_round *round = arg;

    (void)fd;
    (void)what;
    round->overdue = true;
    judge_if_due(round);
}

static void watch_answered(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct query *query = arg;
    struct watch *watch = query->watch;

    query->pending = false;
    if (status == QUORLOCK_ERR_CLOSED || watch->ended) return;
    watch_answer(&watch->state, query->key, query->node, report, query->asked_us, read_time().now_us);
    if (watch->state.failed) {
        end_without_memory(watch);
        return;
    }
    judge_if_due(&watch->rounds[query->key]);
    watch_flush(watch);
}

/* watch_ask - ask a node: 0, or a status of the library. */
static int watch_ask(struct query *query)
{
    struct watch *watch = query->watch;
    const char *name = watch->state.keys[query->key].name;
    int status;

    if (query->pending) return 0;
    query->asked_us = read_time().now_us;
    status = quorlock_client_inspect_node(watch->session.client, query->node, name, watch_answered, query);
    query->pending = status == 0;
    return status;
}

/* begin_round - begin the round of a key: 0, or the exit status after a message. */
static int begin_round(struct watch_round *round)
{
    struct watch *watch = round->watch;
    struct timeval settle = session_span(step_ms(watch) / 2 < SETTLE_MS_MAX ? step_ms(watch) / 2 : SETTLE_MS_MAX);

    round->open = true;
    round->overdue = false;
    for (size_t i = 0; i < watch->state.n_nodes; i++) {
        int status = watch_ask(&round->queries[i]);

        if (status == 0) continue;
        screen_leave();
        return session_check(&watch->session, status);
    }
    if (event_add(round->settle, &settle) == 0) return 0;
    end_without_memory(watch);
    return EXIT_SYSTEM;
}

static void watch_on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct watch *watch = arg;
    struct watch_round *round = &watch->rounds[watch->turn];
    bool over = watch->settings.count > 0 && round->judged >= watch->settings.count;
    int status = 0;

    (void)fd;
    (void)what;
    watch->turn = (watch->turn + 1) % watch->state.n_keys;
    /* Wait for a slow reader, and for the end of the first round. */
    if (watch->output.waiting.length > 0 || (round->open && round->judged == 0) || over) return;
    status = begin_round(round);
    if (status != 0) watch_end(watch, status);
}

/* ---- signals and keys ---- */

/* watch_show - draw on the terminal from now on, unless this process is in the background. */
static void watch_show(struct watch *watch)
{
    if (!watch->live || watch->ended) return;
    if (!output_has_reader(&watch->output)) end_by(watch, SIGHUP, false);
    if (watch->ended || !screen_enter(watch->output.fd)) return;
    if (watch->on_typed != NULL && event_add(watch->on_typed, NULL) != 0) end_without_memory(watch);
    watch_draw(watch);
}

/* on_draw - draw. A process that ran in the background gets no signal when it comes to the foreground. */
static void on_draw(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    watch_show(arg);
}

static void hide(struct watch *watch)
{
    if (watch->on_typed != NULL) event_del(watch->on_typed);
    screen_leave();
}

static void handle_signal(struct watch *watch, int number, bool typed)
{
    if (number == SIGTSTP) {
        hide(watch);
        signals_stop();
    }
    if (number == SIGTSTP || number == SIGCONT) watch_show(watch);
    if (number == SIGWINCH) watch_draw(watch);
    if (signals_end_wait(number)) end_by(watch, number, typed);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    struct watch *watch = arg;
    bool typed = false;

    (void)fd;
    (void)what;
    for (int number; !watch->ended && (number = signals_next(&watch->signals, &typed)) != 0;)
        handle_signal(watch, number, typed);
}

static void on_typed(evutil_socket_t fd, short what, void *arg)
{
    struct watch *watch = arg;
    char key = '\0';
    ssize_t n = read(fd, &key, 1);

    (void)what;
    if (n == 0 || (n < 0 && errno == EIO)) {
        end_by(watch, SIGHUP, false);
    } else if (n == 1 && (key == 'q' || key == 'Q')) {
        watch_end(watch, EXIT_OK);
    }
}

/* ---- life ---- */

static struct event *listen_to(struct watch *watch, int fd, short what, event_callback_fn call, void *arg)
{
    struct event *event = event_new(watch->session.base, fd, what, call, arg);

    if (event == NULL) end_without_memory(watch);
    return event;
}

static bool make_events(struct watch *watch)
{
    struct timeval draws = session_span(DRAW_MS), steps = session_span(step_ms(watch));

    watch->on_signal = listen_to(watch, watch->signals.fd, EV_READ | EV_PERSIST, on_signal, watch);
    watch->on_tick = listen_to(watch, -1, EV_PERSIST, watch_on_tick, watch);
    watch->on_draw = listen_to(watch, -1, EV_PERSIST, on_draw, watch);
    watch->on_room = listen_to(watch, watch->output.fd, EV_WRITE, watch_on_room, watch);
    watch->on_closed = listen_to(watch, watch->output.fd, EV_READ | EV_PERSIST, watch_on_closed, watch);
    if (isatty(STDIN_FILENO) == 1 && watch->live)
        watch->on_typed = listen_to(watch, STDIN_FILENO, EV_READ | EV_PERSIST, on_typed, watch);
    if (watch->ended || event_add(watch->on_signal, NULL) != 0 || event_add(watch->on_tick, &steps) != 0 ||
        (watch->live && event_add(watch->on_draw, &draws) != 0)) {
        end_without_memory(watch);
        return false;
    }
    /* A terminal is readable when somebody types, and a file has no reader. */
    if (isatty(STDOUT_FILENO) != 1) (void)event_add(watch->on_closed, NULL);
    return true;
}

static bool make_rounds(struct watch *watch)
{
    watch->rounds = calloc(watch->state.n_keys, sizeof(*watch->rounds));
    for (size_t i = 0; watch->rounds != NULL && i < watch->state.n_keys; i++) {
        struct watch_round *round = &watch->rounds[i];

        round->watch = watch;
        round->key = i;
        for (size_t k = 0; k < QUORLOCK_NODES_MAX; k++)
            round->queries[k] = (struct query){.watch = watch, .key = i, .node = k};
        round->settle = listen_to(watch, -1, 0, on_settle, round);
    }
    if (watch->rounds == NULL) end_without_memory(watch);
    return !watch->ended;
}

/* watch_begin - count the nodes, and ask all of them for all keys: 0, or the exit status after a message. */
static int watch_begin(struct watch *watch)
{
    int status = 0;

    while (status == 0 && watch->state.n_nodes < QUORLOCK_NODES_MAX) {
        status = watch_ask(&watch->rounds[0].queries[watch->state.n_nodes]);
        watch->state.n_nodes += status == 0;
    }
    if (watch->state.n_nodes == 0) return session_check(&watch->session, status);
    status = 0;
    for (size_t i = 0; status == 0 && i < watch->state.n_keys; i++) status = begin_round(&watch->rounds[i]);
    if (status == 0) watch_show(watch);
    return status;
}

/* clear_events - free the events. Call it before the loop is freed. */
static void clear_events(struct watch *watch)
{
    struct event *events[] = {watch->on_signal, watch->on_tick, watch->on_draw,
                              watch->on_typed,  watch->on_room, watch->on_closed};

    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (events[i] != NULL) event_free(events[i]);
    for (size_t i = 0; watch->rounds != NULL && i < watch->state.n_keys; i++)
        if (watch->rounds[i].settle != NULL) event_free(watch->rounds[i].settle);
}

/* show_last - write the last picture on the normal screen. */
static void show_last(struct watch *watch)
{
    struct watch_time time = read_time();
    struct watch_look look;
    struct text picture = {0};

    hide(watch);
    watch->live = false;
    if (!watch->table || watch->output.waiting.length > 0 || watch->state.quorum == 0) return;
    look = look_of(watch);
    watch_table(&picture, &watch->state, &look, &time);
    output_add(&watch->output, &picture);
    (void)output_write(&watch->output);
}

/* open_all - open all: 0, or the exit status after a message. */
static int open_all(struct watch *watch)
{
    output_open(&watch->output);
    watch->state.tell = on_event;
    watch->state.arg = watch;
    if (!signals_open(&watch->signals)) {
        say("cannot watch signals: %s", strerror(errno));
        return EXIT_SYSTEM;
    }
    if (!watch_state_init(&watch->state, watch->settings.words, watch->settings.n_words)) end_without_memory(watch);
    return !watch->ended && make_rounds(watch) && make_events(watch) ? watch_begin(watch) : EXIT_SYSTEM;
}

static int watch_run(struct watch *watch)
{
    int status = session_open(&watch->session, &watch->settings);

    if (status != 0) return status;
    status = open_all(watch);
    if (status == 0 && !watch->ended && event_base_dispatch(watch->session.base) != 0) status = EXIT_SYSTEM;
    if (status == 0) status = watch->session.status;
    show_last(watch);
    clear_events(watch);
    watch->ended = true;
    session_close(&watch->session);
    return status;
}

/* watch_clear - free all, except what a client that is not closed may refer to. */
static void watch_clear(struct watch *watch)
{
    for (size_t i = 0; i < watch->n_lines; i++) text_clear(&watch->lines[i]);
    output_close(&watch->output);
    if (watch->signals.fd >= 0) close(watch->signals.fd);
    if (!watch->session.closed) return;
    free(watch->rounds);
    watch_state_clear(&watch->state);
}

int verb_watch(const struct settings *settings)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct watch watch;
    int status;

    if (settings->n_words > QUORLOCK_KEYS_MAX) {
        say("watch takes %d keys at most, and not %zu: start another watch for the rest", QUORLOCK_KEYS_MAX,
            settings->n_words);
        return EXIT_USAGE;
    }
    watch = (struct watch){.settings = *settings, .signals.fd = -1, .output.fd = STDOUT_FILENO};
    if (watch.settings.interval_ms == 0) watch.settings.interval_ms = INTERVAL_MS;
    /* The library's lines about nodes come as events. */
    if (watch.settings.verbose == 0) watch.settings.verbose = -1;
    watch.table = screen_is_usable() && !settings->json;
    watch.live = watch.table && settings->count != 1;
    status = watch_run(&watch);
    watch_clear(&watch);
    if (watch.typed && status == EXIT_SIGNAL + watch.signal) signals_die(watch.signal, false);
    return status;
}
