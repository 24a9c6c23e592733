/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"

#include <stdlib.h>

#include "base/list.h"
#include "panic.h"

#define EXPIRY_US       100000
#define EACH_US         20 /* a command takes so long on average */
#define RANDOM_SERVICE  1
#define RANDOM_IDENTITY 2

/* A connection as the process has it. */
struct seat {
    struct server *server;
    struct conn *conn;
    struct session *session;
    struct link at, turn; /* in server->seats, server->waiting */
    bool hung_up;
    bool resent; /* as net_is_resent() */
    struct seat *next_spare;
};

struct server {
    struct queue *queue;
    struct net *net;
    struct model *model;
    struct model_memory *snapshot;
    struct model_events events;
    uint32_t index, each_us, n_hung_up;
    bool up, frozen;
    struct skew wall, ran; /* as it was when last looked at */
    struct rng service_rng, identity_rng;
    uint64_t executed;
    struct list seats, waiting; /* for their turn: commands of theirs may have arrived */
    struct seat *spare;
    struct moment service, thaw, idle, loaded;
};

/* ---- connections ---- */

static void serve_later(struct server *server)
{
    uint64_t each_us = 1 + rng_long_tail(&server->service_rng, server->each_us);

    if (server->waiting.count > 0 && server->service.index == 0 && !server->frozen)
        queue_set(server->queue, &server->service, server->queue->now_us + each_us);
}

static void expect_commands(struct seat *seat)
{
    list_add(&seat->server->waiting, &seat->turn);
    serve_later(seat->server);
}

static void leave(struct seat *seat)
{
    struct server *server = seat->server;

    list_remove(&server->seats, &seat->at);
    list_remove(&server->waiting, &seat->turn);
    model_close(seat->session);
    seat->next_spare = server->spare;
    server->spare = seat;
}

/* Not from inside the model, which still uses the session then. */
static void clear_seats(struct server *server)
{
    if (server->n_hung_up == 0) return;
    server->n_hung_up = 0;
    LIST_WALK (struct seat, seat, &server->seats, at) {
        if (seat->hung_up) leave(seat);
    }
}

static void on_write(void *arg, const void *bytes, size_t size)
{
    const struct seat *seat = arg;

    if (!seat->hung_up && seat->conn != NULL) net_reply(seat->conn, bytes, size);
}

static void on_hang_up(void *arg)
{
    struct seat *seat = arg;

    if (seat->hung_up) return;
    seat->hung_up = true;
    if (seat->conn == NULL) return;
    seat->server->n_hung_up++;
    net_hang_up(seat->conn);
}

static void *on_accept(void *arg, struct conn *conn)
{
    struct server *server = arg;
    struct seat *seat = server->spare;

    if (seat != NULL)
        server->spare = seat->next_spare;
    else
        seat = malloc(sizeof(*seat));
    if (seat == NULL) panic("no memory for a connection");
    *seat = (struct seat){.server = server, .conn = conn};
    list_add(&server->seats, &seat->at);
    seat->session = model_open(server->model, on_write, on_hang_up, seat);
    /* One client too many is told so in its first step. */
    expect_commands(seat);
    return seat;
}

/* ---- service: one command at a time, the connections in turn ---- */

/* A server looks for what has expired ten times a second. So what expired before its clock was changed stays gone, also
 * where that was a step back. */
static void follow_clock(struct server *server)
{
    const struct skew ran = server->ran, *wall = &server->wall;
    uint64_t ago_us = rng_mix(wall->begun_us, wall->shown_us) % EXPIRY_US, wall_us = skew_read(&ran, wall->begun_us);

    if (ran.begun_us == wall->begun_us && ran.shown_us == wall->shown_us && ran.rate_ppm == wall->rate_ppm) return;
    server->ran = *wall;
    if (server->up && !server->frozen && wall_us > ago_us) model_expire(server->model, wall_us - ago_us);
}

static void on_service(void *arg)
{
    struct server *server = arg;
    bool executed = false;

    follow_clock(server);
    while (!executed && server->waiting.count > 0) {
        struct seat *seat = FIRST_OF(&server->waiting, struct seat, turn);

        list_remove(&server->waiting, &seat->turn);
        executed = model_step(seat->session, server_wall_us(server));
        if (executed && !seat->hung_up && model_has_input(seat->session)) list_add(&server->waiting, &seat->turn);
        clear_seats(server);
    }
    if (executed) server->executed++;
    serve_later(server);
}

/* The process reads all that there is before it notices the end. */
static void on_gone(void *arg)
{
    struct seat *seat = arg;
    struct server *server = seat->server;

    seat->conn = NULL;
    follow_clock(server);
    while (!seat->hung_up && model_has_input(seat->session) && model_step(seat->session, server_wall_us(server)))
        server->executed++;
    leave(seat);
    clear_seats(server);
}

static void on_input(void *arg, const void *bytes, size_t size)
{
    struct seat *seat = arg;

    seat->resent |= net_is_resent(seat->conn);
    model_feed(seat->session, bytes, size);
    expect_commands(seat);
}

/* ---- life ---- */

static void listen_again(struct server *server)
{
    const struct net_server listener = {on_accept, on_input, on_gone, server};

    server->up = true;
    net_listen(server->net, server->index, &listener);
}

static void draw_identity(struct server *server, struct model_manners *manners, bool new_replid)
{
    manners->run = rng_next(&server->identity_rng);
    if (new_replid) manners->replid = rng_next(&server->identity_rng);
}

static void on_thaw(void *arg)
{
    struct server *server = arg;

    server->frozen = false;
    net_freeze(server->net, server->index, false);
    serve_later(server);
}

static void on_idle(void *arg)
{
    struct server *server = arg;

    model_manners(server->model)->busy = false;
}

static void on_loaded(void *arg)
{
    struct server *server = arg;

    model_manners(server->model)->loading = false;
}

struct server *server_new(struct queue *queue, struct net *net)
{
    struct server *server = calloc(1, sizeof(*server));

    if (server == NULL) panic("no memory for a server");
    server->queue = queue;
    server->net = net;
    server->model = model_new();
    server->service = (struct moment){.happen = on_service, .arg = server};
    server->thaw = (struct moment){.happen = on_thaw, .arg = server};
    server->idle = (struct moment){.happen = on_idle, .arg = server};
    server->loaded = (struct moment){.happen = on_loaded, .arg = server};
    return server;
}

/* All its connections and what is to come end with a process. */
static void end_process(struct server *server)
{
    LIST_WALK (struct seat, seat, &server->seats, at) leave(seat);
    server->n_hung_up = 0;
    server->up = server->frozen = false;
    queue_set(server->queue, &server->service, NEVER);
    queue_set(server->queue, &server->thaw, NEVER);
    queue_set(server->queue, &server->idle, NEVER);
    queue_set(server->queue, &server->loaded, NEVER);
}

void server_free(struct server *server)
{
    if (server == NULL) return;
    end_process(server);
    if (server->snapshot != NULL) model_forget(server->snapshot);
    model_free(server->model);
    while (server->spare != NULL) {
        struct seat *seat = server->spare;

        server->spare = seat->next_spare;
        free(seat);
    }
    free(server);
}

void server_boot(struct server *server, uint32_t index, uint64_t seed, const struct skew *wall,
                 const struct model_events *events)
{
    struct model_manners manners = {.version = MODEL_VERSION};

    end_process(server);
    if (server->snapshot != NULL) model_forget(server->snapshot);
    server->snapshot = NULL;
    server->index = index;
    server->wall = server->ran = *wall;
    server->events = *events;
    server->each_us = EACH_US;
    server->executed = 0;
    rng_seed(&server->service_rng, seed, RANDOM_SERVICE);
    rng_seed(&server->identity_rng, seed, RANDOM_IDENTITY);
    draw_identity(server, &manners, true);
    model_start(server->model, &manners, true, &server->events);
    listen_again(server);
}

void server_crash(struct server *server, bool host)
{
    if (!server->up) return;
    net_ended(server->net, server->index, host);
    end_process(server);
}

void server_launch(struct server *server, enum server_memory memory, bool new_replid, uint64_t loading_us)
{
    struct model_manners manners = *model_manners(server->model);

    if (server->up) return;
    draw_identity(server, &manners, new_replid);
    /* A replica that takes its place has run for long. */
    manners.started_us = memory == SERVER_OLD && new_replid ? 0 : server_wall_us(server);
    manners.repl_input = 0;
    manners.busy = false;
    manners.loading = loading_us > 0;
    model_start(server->model, &manners, memory != SERVER_KEEPS, &server->events);
    if (memory == SERVER_OLD) model_load(server->model, server->snapshot);
    if (loading_us > 0) queue_set(server->queue, &server->loaded, server->queue->now_us + loading_us);
    listen_again(server);
}

void server_snapshot(struct server *server)
{
    if (server->snapshot != NULL) model_forget(server->snapshot);
    server->snapshot = model_save(server->model);
}

void server_halt(struct server *server, uint64_t until_us)
{
    if (!server->up) return;
    server->frozen = true;
    net_freeze(server->net, server->index, true);
    queue_set(server->queue, &server->service, NEVER);
    queue_set(server->queue, &server->thaw, until_us);
}

void server_busy(struct server *server, uint64_t until_us)
{
    if (!server->up) return;
    model_manners(server->model)->busy = true;
    queue_set(server->queue, &server->idle, until_us);
}

void server_service_us(struct server *server, uint32_t each_us)
{
    server->each_us = each_us;
}

bool server_is_up(const struct server *server)
{
    return server->up;
}

/* ---- what there is to see ---- */

struct skew *server_clock(struct server *server)
{
    return &server->wall;
}

uint64_t server_wall_us(const struct server *server)
{
    return skew_read(&server->wall, server->queue->now_us);
}

struct model *server_model(struct server *server)
{
    follow_clock(server);
    return server->model;
}

uint64_t server_executed(const struct server *server)
{
    return server->executed;
}

bool server_is_deserted(const struct session *session)
{
    const struct seat *seat = model_session_arg(session);

    return seat != NULL && (seat->conn == NULL || net_is_deserted(seat->conn));
}

bool server_is_resent(const struct session *session)
{
    const struct seat *seat = model_session_arg(session);

    return seat != NULL && seat->resent;
}
