/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_admission.c - who goes when there is room at the nodes, who waits, and how much room there is
 *
 * Two nodes of the client are one real node, so that it has one state and one number of requests in flight, but two
 * paces.
 */
#include <string.h>

#include <event2/event.h>

#include "lock/admission.h"
#include "node_fixture.h"

#define NODES  2u
#define MANY   2048u
#define WINDOW 256u
#define MS     UINT64_C(1000)

/* r, R: renewals; p, P: repairs; a, A: attempts */
#define APPLICANTS "rRpPaA"
/* Releases that wait at the first node, and at the second. */
#define RELEASES "1!2?"

struct scene {
    struct node_fixture *node;
    struct runtime runtime;
    struct runtime_node nodes[NODES];
    struct admission admission;
    struct applicant applicants[sizeof(APPLICANTS)];
    struct unsent_release releases[sizeof(RELEASES)];
    struct turn turn;
    unsigned turns;
    uint64_t asleep_us; /* so much the node'f clock has advanced beside the others */
    char went[32];
    const char *stays; /* these do not begin, or are not sent */
    bool sends;        /* a release that is sent is in flight then */
};

static struct scene scene;

static void note(char letter)
{
    size_t n = strlen(scene.went);

    assert_true(n + 1 < sizeof(scene.went));
    scene.went[n] = letter;
    scene.went[n + 1] = '\0';
}

static bool stays(char letter)
{
    return scene.stays != NULL && strchr(scene.stays, letter) != NULL;
}

static bool on_begin(struct applicant *applicant)
{
    char letter = APPLICANTS[applicant - scene.applicants];

    note(letter);
    if (stays(letter)) return false;
    admission_follow(&scene.admission, applicant, CORE_WANTS_NOTHING, false);
    return true;
}

static void on_send(struct unsent_release *release, uint32_t node)
{
    size_t index = (size_t)(release - scene.releases);

    assert_int_equal(node, index / 2);
    note(RELEASES[index]);
    if (stays(RELEASES[index])) admission_add_unsent(&scene.admission, release, node);
    if (scene.sends) scene.runtime.in_flight++;
}

static void on_turn_begins(struct turn *turn)
{
    (void)turn;
    scene.turns++;
}

static bool on_turn_next(struct turn *turn)
{
    (void)turn;
    return false;
}

static void on_turn_ends(struct turn *turn)
{
    (void)turn;
}

static bool on_turn_waits(struct turn *turn, bool closing)
{
    (void)turn;
    (void)closing;
    return false;
}

static uint64_t node_clock_us(void *arg)
{
    return clock_us(arg) + scene.asleep_us;
}

static int setup(void **state)
{
    (void)node_fixture_setup(state);
    memset(&scene, 0, sizeof(scene));
    scene.node = *state;
    *state = &scene;
    return 0;
}

static void scene_end(struct scene *f)
{
    struct node_fixture *node = f->node;

    if (f->runtime.at_top != NULL) {
        runtime_stop_waker(&f->admission.look);
        runtime_stop(&f->runtime);
    }
    memset(f, 0, sizeof(*f));
    f->node = node;
}

static int teardown(void **state)
{
    scene_end(*state);
    *state = scene.node;
    return node_fixture_teardown(state);
}

#define ADMISSION_TEST(name) TEST_WITH(scene, name, setup, teardown)

/* Nothing waits, nobody asks. */
static void renew(struct scene *f)
{
    if (f->admission.runtime != NULL) runtime_stop_waker(&f->admission.look);
    f->admission = (struct admission){.begin = on_begin, .send = on_send};
    admission_start(&f->admission, &f->runtime);
    memset(f->applicants, 0, sizeof(f->applicants));
    memset(f->releases, 0, sizeof(f->releases));
    f->went[0] = '\0';
    f->stays = NULL;
    f->runtime.batch_us = runtime_read_us(&f->runtime);
}

/* The node is READY, or still connecting. */
static void begin(struct scene *f, bool ready)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), END};
    struct node_fixture *node = f->node;

    scene_end(f);
    node_fixture_open(node);
    node->config.link.now_us = node_clock_us;
    fake_play(node->server, script);
    assert_non_null(node_fixture_new_node(node));
    if (ready) run_until(node, "ready");
    f->runtime.alloc = node->alloc;
    f->runtime.system = node->system;
    f->runtime.n_nodes = NODES;
    f->runtime.nodes = f->nodes;
    for (uint32_t i = 0; i < NODES; i++) f->nodes[i].node = node->node;
    f->turn = (struct turn){.begin = on_turn_begins, .next = on_turn_next, .end = on_turn_ends, .waits = on_turn_waits};
    assert_int_equal(runtime_start(&f->runtime), 0);
    runtime_add_turn(&f->runtime, &f->turn);
    renew(f);
}

/* So many requests are in flight at the node. */
static void fill(struct scene *f, size_t count)
{
    while (node_in_flight(f->node->node) < count) assert_int_equal(ask(f->node, 1, OP_ACQUIRE, 0), NODE_SENT);
}

/* One request reached the server, and is not answered for long. */
static void make_late(struct scene *f)
{
    unsigned before = fake_commands(f->node->server);

    fill(f, 1);
    while (fake_commands(f->node->server) == before) event_base_loop(f->node->base, EVLOOP_ONCE);
    assert_false(node_is_late(f->node->node));
    f->asleep_us = 1000 * MS * 1000;
    assert_true(node_is_late(f->node->node));
}

static struct applicant *applicant(char letter)
{
    return &scene.applicants[strchr(APPLICANTS, letter) - APPLICANTS];
}

static enum core_wants wants_of(char letter)
{
    if (letter == 'r' || letter == 'R') return CORE_WANTS_ROUND;
    return letter == 'p' || letter == 'P' ? CORE_WANTS_REPAIR : CORE_WANTS_ATTEMPT;
}

/* Let these wait, in that order. */
static void wait_all(struct scene *f, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const char *release = strchr(RELEASES, *letters);
        uint32_t index = release != NULL ? (uint32_t)(release - RELEASES) : 0;

        if (release != NULL) {
            admission_add_unsent(&f->admission, &f->releases[index], index / 2);
        } else {
            admission_follow(&f->admission, applicant(*letters), wants_of(*letters), false);
        }
    }
}

/* ---- who goes ---- */

enum node_is { IS_READY, IS_BUSY, IS_FULL, IS_LATE, IS_AWAY };

struct room_row {
    enum node_is node;
    uint32_t rooms[NODES]; /* of the paces */
    const char *waits, *goes;
    bool is_window_full;
};

/* Without what stands in the buffer: BUSY has no room for new attempts, FULL none for renewals either. */
static void make_busy(struct scene *f, enum node_is is)
{
    enum node_room room = is == IS_BUSY ? NODE_ROOM_NEW : NODE_ROOM_KEEP;

    while (node_has_room(f->node->node, room)) assert_int_equal(ask(f->node, 1, OP_ACQUIRE, 0), NODE_SENT);
    assert_int_equal(node_has_room(f->node->node, NODE_ROOM_KEEP), is == IS_BUSY);
    assert_false(node_is_late(f->node->node));
}

static void make(struct scene *f, enum node_is is)
{
    begin(f, is != IS_AWAY);
    if (is == IS_LATE) make_late(f);
    if (is == IS_BUSY || is == IS_FULL) make_busy(f, is);
}

ADMISSION_TEST(what_there_is_room_for_goes_in_its_order)
{
    static const struct room_row rows[] = {
        {IS_READY, {MANY, MANY}, "", "", false},
        {IS_READY, {MANY, MANY}, "aApP12rR!?", "rR1!2?pPaA", false},
        {IS_READY, {MANY, MANY}, "aApP12rR!?", "rR1!2?pP", true},
        {IS_READY, {MANY, MANY}, "a", "", true},
        /* Repairs take half of the room of each node, and attempts their turn behind all others. */
        {IS_READY, {MANY, 2}, "arp12", "r12pa", false},
        {IS_READY, {MANY, 1}, "arp12", "r12", false},
        {IS_READY, {1, MANY}, "arp12", "r12", false},
        {IS_READY, {MANY, 1}, "p", "", false},
        {IS_READY, {0, MANY}, "ar12", "2", false},
        {IS_READY, {MANY, 0}, "ar12", "1", false},
        {IS_READY, {MANY, 0}, "a1", "1a", false},
        {IS_READY, {MANY, 0}, "a2", "", false},
        {IS_READY, {0, 0}, "a", "a", false},
        {IS_BUSY, {1u << 20, 1u << 20}, "rRpa1", "rR1", false},
        {IS_BUSY, {1u << 20, 1u << 20}, "a", "", false},
        {IS_BUSY, {1u << 20, 1u << 20}, "p", "", false},
        {IS_FULL, {1u << 20, 1u << 20}, "rRpa1", "", false},
        /* Nobody waits for a node that is late or away, but what only such a node can do. */
        {IS_LATE, {0, 0}, "rRpPaA1", "rRpPaA", false},
        {IS_LATE, {MANY, MANY}, "rRpPaA1", "rR1pPaA", false},
        {IS_AWAY, {MANY, MANY}, "rRpPaA1", "rRpPaA", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        if (i == 0 || rows[i].node != rows[i - 1].node) make(f, rows[i].node);
        renew(f);
        for (uint32_t k = 0; k < NODES; k++) f->admission.paces[k].room = rows[i].rooms[k];
        if (rows[i].is_window_full) f->admission.asking = f->admission.window;
        wait_all(f, rows[i].waits);
        admission_serve(&f->admission);
        assert_string_equal(f->went, rows[i].goes);
        assert_int_equal(admission_is_wanted(&f->admission), strlen(rows[i].waits) != strlen(rows[i].goes));
    }
}

ADMISSION_TEST(nobody_passes_who_waits_for_as_much)
{
    static const struct {
        const char *waits;
        bool round, repair, attempt;
    } rows[] = {
        {"", true, true, true},   {"r", false, false, false}, {"p", true, false, false},
        {"a", true, true, false}, {"2", true, true, false},
    };

    begin(f, true);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        renew(f);
        wait_all(f, rows[i].waits);
        assert_int_equal(admission_has_room(&f->admission, CORE_WANTS_ROUND), rows[i].round);
        assert_int_equal(admission_has_room(&f->admission, CORE_WANTS_REPAIR), rows[i].repair);
        assert_int_equal(admission_has_room(&f->admission, CORE_WANTS_ATTEMPT), rows[i].attempt);
    }
    renew(f);
    f->admission.paces[1].room = 0;
    assert_false(admission_has_room(&f->admission, CORE_WANTS_ROUND));
    assert_false(admission_has_room(&f->admission, CORE_WANTS_REPAIR));
    f->admission.asking = f->admission.window;
    assert_false(admission_has_room(&f->admission, CORE_WANTS_ATTEMPT));
}

ADMISSION_TEST(a_step_may_not_begin_what_there_is_no_room_for)
{
    static const struct {
        enum core_event_type type;
        bool no_attempt, no_round, no_repair;
    } rows[] = {
        {CORE_EV_ACQUIRE, true, false, false}, {CORE_EV_NOTICE, true, false, false}, {CORE_EV_WAKE, true, false, false},
        {CORE_EV_EXTEND, false, true, false},  {CORE_EV_TIMER, true, true, true},    {CORE_EV_NODE, true, true, false},
        {CORE_EV_BEGIN, false, false, false},  {CORE_EV_REPLY, false, false, false},
    };

    begin(f, true);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct core_event event = {.type = rows[i].type};

        renew(f);
        admission_limit(&f->admission, &event);
        assert_false(event.no_attempt || event.no_round || event.no_repair);
        wait_all(f, "rpa");
        admission_limit(&f->admission, &event);
        assert_int_equal(event.no_attempt, rows[i].no_attempt);
        assert_int_equal(event.no_round, rows[i].no_round);
        assert_int_equal(event.no_repair, rows[i].no_repair);
    }
}

/* ---- serving ---- */

ADMISSION_TEST(who_cannot_begin_now_is_asked_first_the_next_time)
{
    begin(f, true);
    wait_all(f, "rRaA");
    f->stays = "r";
    admission_serve(&f->admission);
    assert_string_equal(f->went, "r");
    f->stays = "a";
    admission_serve(&f->admission);
    assert_string_equal(f->went, "rrRa");
    f->stays = NULL;
    admission_serve(&f->admission);
    assert_string_equal(f->went, "rrRaaA");
}

ADMISSION_TEST(a_release_that_is_not_sent_is_tried_again_behind_the_others)
{
    begin(f, true);
    wait_all(f, "1!2");
    f->stays = "12";
    admission_serve(&f->admission);
    assert_string_equal(f->went, "1!2");
    assert_int_equal(f->runtime.close_until_us, 0);
    f->stays = NULL;
    wait_all(f, "!");
    admission_serve(&f->admission);
    assert_string_equal(f->went, "1!21!2");
}

/* A close waits for its answer from now on. */
ADMISSION_TEST(a_release_that_is_sent_is_waited_for)
{
    begin(f, true);
    wait_all(f, "1");
    f->sends = true;
    f->runtime.options.node_timeout_ms = 500;
    admission_serve(&f->admission);
    assert_string_equal(f->went, "1");
    assert_int_equal(f->runtime.close_until_us, f->runtime.batch_us + 500 * MS);
}

ADMISSION_TEST(while_anything_waits_room_is_looked_for)
{
    static const char *const rows[] = {"r", "p", "a", "1"};

    begin(f, true);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        uint64_t first_us;

        renew(f);
        first_us = f->runtime.batch_us + 20 * MS;
        assert_true(runtime_wakes_at(&f->admission.look) == UINT64_MAX);
        wait_all(f, rows[i]);
        assert_int_equal(runtime_wakes_at(&f->admission.look), first_us);
        f->runtime.batch_us += MS;
        wait_all(f, "R2");
        assert_int_equal(runtime_wakes_at(&f->admission.look), first_us);
        /* It has fired, and there was no room. */
        runtime_wake_at(&f->runtime, &f->admission.look, UINT64_MAX);
        f->stays = "rRp2a1";
        admission_serve(&f->admission);
        assert_int_equal(runtime_wakes_at(&f->admission.look), f->runtime.batch_us + 20 * MS);
    }
    renew(f);
    admission_serve(&f->admission);
    assert_true(runtime_wakes_at(&f->admission.look) == UINT64_MAX);
}

ADMISSION_TEST(releases_are_owed_while_a_node_will_take_them)
{
    static const struct {
        enum node_is node;
        const char *waits;
        bool owes;
    } rows[] = {
        {IS_READY, "", false}, {IS_READY, "rpa", false}, {IS_READY, "1", true},
        {IS_READY, "2", true}, {IS_LATE, "2", false},    {IS_AWAY, "2", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        make(f, rows[i].node);
        wait_all(f, rows[i].waits);
        assert_int_equal(admission_owes(&f->admission), rows[i].owes);
    }
}

/* ---- who waits, and who asks ---- */

static void follow(struct scene *f, char letter, enum core_wants wants, bool asking)
{
    admission_follow(&f->admission, applicant(letter), wants, asking);
}

static void expect_waiting(struct scene *f, size_t rounds, size_t repairs, size_t attempts, uint32_t asking)
{
    assert_int_equal(f->admission.rounds.count, rounds);
    assert_int_equal(f->admission.repairs.count, repairs);
    assert_int_equal(f->admission.attempts.count, attempts);
    assert_int_equal(f->admission.asking, asking);
}

ADMISSION_TEST(an_applicant_waits_for_one_thing)
{
    begin(f, true);
    follow(f, 'r', CORE_WANTS_REPAIR, false);
    follow(f, 'a', CORE_WANTS_ATTEMPT, false);
    follow(f, 'A', CORE_WANTS_NOTHING, true);
    expect_waiting(f, 0, 1, 1, 1);
    follow(f, 'r', CORE_WANTS_ROUND, false);
    follow(f, 'a', CORE_WANTS_ATTEMPT, false);
    follow(f, 'A', CORE_WANTS_NOTHING, true);
    expect_waiting(f, 1, 0, 1, 1);
    follow(f, 'a', CORE_WANTS_NOTHING, true);
    expect_waiting(f, 1, 0, 0, 2);
    admission_leave(&f->admission, applicant('r'));
    admission_leave(&f->admission, applicant('a'));
    expect_waiting(f, 0, 0, 0, 1);
    follow(f, 'A', CORE_WANTS_NOTHING, false);
    expect_waiting(f, 0, 0, 0, 0);
}

/* The turns that run until the loop has nothing more to do now. */
static unsigned turns(struct scene *f)
{
    f->turns = 0;
    runtime_batch(&f->runtime, false);
    event_base_loop(f->node->base, EVLOOP_NONBLOCK);
    runtime_batch(&f->runtime, true);
    return f->turns;
}

ADMISSION_TEST(an_attempt_that_ends_lets_the_next_begin_in_this_turn)
{
    begin(f, true);
    follow(f, 'a', CORE_WANTS_NOTHING, true);
    (void)turns(f);
    follow(f, 'a', CORE_WANTS_NOTHING, false);
    assert_int_equal(turns(f), 0);
    follow(f, 'a', CORE_WANTS_NOTHING, true);
    follow(f, 'A', CORE_WANTS_ATTEMPT, false);
    f->runtime.batch_us = 0;
    runtime_wake_at(&f->runtime, &f->admission.look, UINT64_MAX);
    (void)turns(f);
    follow(f, 'a', CORE_WANTS_NOTHING, false);
    assert_true(turns(f) > 0);
}

/* ---- how much room there is ---- */

struct answer_row {
    size_t in_flight;
    uint64_t later_us;
    uint32_t latency_us;
    uint32_t room, way_us, window; /* then */
};

static void answer(struct scene *f, const struct answer_row *row)
{
    const struct pace *pace = &f->admission.paces[1];

    fill(f, row->in_flight);
    f->runtime.batch_us += row->later_us;
    admission_update_rtt(&f->admission, 1, row->latency_us, 800 * MS);
    assert_int_equal(pace->room, row->room);
    assert_int_equal(pace->way_us, row->way_us);
    assert_int_equal(f->admission.window, row->window);
}

ADMISSION_TEST(answers_that_waited_at_the_node_leave_less_room)
{
    static const struct answer_row rows[] = {
        {0, 1000, 5000, MANY, 5000, WINDOW + 1},
        {0, 1000, 3000, MANY, 3000, WINDOW + 2},
        /* The way became longer: seen while few are in flight. */
        {0, 1000, 11000, MANY, 4000, WINDOW + 3},
        {32, 1000, 12000, MANY, 5000, WINDOW + 4},
        {33, 1000, 13000, MANY, 5000, WINDOW + 5},
        /* Slow is an eighth of the timeout more than the way. */
        {33, 1000, 105000, MANY, 5000, WINDOW + 6},
        {33, 1000, 105001, MANY / 2, 5000, WINDOW + 5},
        /* It was in flight with the one before; the third was not. */
        {33, 105000, 105001, MANY / 2, 5000, WINDOW + 4},
        {33, 1, 105001, MANY / 4, 5000, WINDOW + 3},
    };

    begin(f, true);
    for (size_t i = 0; i < LENGTH(rows); i++) answer(f, &rows[i]);
    assert_int_equal(f->admission.paces[0].room, MANY);
}

ADMISSION_TEST(room_grows_where_it_is_used_and_stays_in_its_bounds)
{
    static const struct {
        uint32_t room, window;
        struct answer_row row;
    } rows[] = {
        {60, WINDOW, {30, 1000, 1000, 61, 1000, WINDOW + 1}}, {61, WINDOW, {30, 1000, 1000, 61, 1000, WINDOW + 1}},
        {65, 17, {33, 1000, 300000, 32, 1000, 16}},           {64, 16, {33, 1000, 300000, 32, 1000, 16}},
        {62, 16, {33, 1000, 300000, 32, 1000, 16}},           {100, 1023, {33, 1000, 2000, 100, 1000, 1024}},
        {100, 1024, {33, 1000, 2000, 100, 1000, 1024}},
    };

    begin(f, true);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        f->admission.window = rows[i].window;
        f->admission.paces[1] = (struct pace){.room = rows[i].room, .way_us = 1000};
        answer(f, &rows[i].row);
    }
}
