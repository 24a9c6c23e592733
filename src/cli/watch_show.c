/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch_show.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "document.h"
#include "owner.h"
#include "report.h"

enum { US_PER_S = 1000000, TIME_SIZE = 40, SPAN_COLUMNS = 9, BRIEF_NODES = 7 };

/* ---- words ---- */

/* add_span - add a time, as "24.1 s", "12 m 05 s" or "3 h 04 m". */
static void add_span(struct text *text, uint64_t us)
{
    uint64_t tenths = us / (US_PER_S / 10), s = us / US_PER_S, m = s / 60;

    if (us == WATCH_NEVER) {
        text_format(text, "no expiry");
    } else if (s < 60) {
        text_format(text, "%" PRIu64 ".%" PRIu64 " s", tenths / 10, tenths % 10);
    } else if (m < 60) {
        text_format(text, "%" PRIu64 " m %02" PRIu64 " s", m, s % 60);
    } else {
        text_format(text, "%" PRIu64 " h %02" PRIu64 " m", m / 60, m % 60);
    }
}

static void watch_show_add_left(struct text *text, uint64_t then_us, uint64_t now_us)
{
    add_span(text, watch_left_us(then_us, now_us));
    if (then_us != WATCH_NEVER) text_format(text, " left");
}

/* add_owner - add the label and 8 characters of the token, safe for a terminal. */
static void add_owner(struct text *text, const char *holder)
{
    struct text owner = {0};

    if (holder == NULL) return;
    owner_short(&owner, holder);
    text_add_safe(text, owner.bytes, owner.length);
    text->failed |= owner.failed;
    text_clear(&owner);
}

static void watch_show_add_key(struct text *text, const struct watch_key *key)
{
    text_format(text, "\"");
    text_add_known(text, key->name);
    text_format(text, "\"");
}

/* add_type - add the type of a value that is no lock. */
static void add_type(struct text *text, const struct watch_state *state, const struct watch_key *key)
{
    const char *type = NULL;

    for (size_t i = 0; i < state->n_nodes; i++)
        if (key->votes[i].answer == WATCH_FOREIGN && key->votes[i].type != NULL) type = key->votes[i].type;
    text_add_known(text, type != NULL ? type : "value of another type");
}

static void add_waiters(struct text *text, const struct watch_key *key, uint64_t now_us)
{
    if (key->waiters <= 0) {
        text_format(text, "nobody waits");
        return;
    }
    text_format(text, "%" PRId64 " client%s", key->waiters, key->waiters == 1 ? " waits" : "s wait");
    if (now_us < key->waiting_since_us + US_PER_S / 10) return;
    text_format(text, ", for ");
    add_span(text, now_us - key->waiting_since_us);
}

/* watch_show_add_verdict - add the state of the key. */
static void watch_show_add_verdict(struct text *text, const struct watch_state *state, const struct watch_key *key,
                                   uint64_t now_us)
{
    const struct watch_parts *parts = &key->parts;

    switch (key->verdict) {
    case WATCH_QUORUM:
        text_format(text, " is held by ");
        if (parts->readers > 0) text_format(text, "%" PRIu32 " ", parts->readers);
        if (parts->readers == 1) text_format(text, "reader");
        if (parts->readers != 1) add_owner(text, key->holder);
        text_format(text, " on %" PRIu32 " of %zu nodes, ", key->n_votes, state->n_nodes);
        watch_show_add_left(text, key->ends_after_us, now_us);
        break;
    case WATCH_TAKEN:
        text_format(text, " is taken by ");
        add_owner(text, key->holder);
        text_format(text, " on %" PRIu32 " of %zu nodes, which is no quorum", key->n_votes, state->n_nodes);
        break;
    case WATCH_IS_FREE:
        if (parts->permits == 0)
            text_format(text, " is free");
        else
            text_format(text, ": %" PRIu32 " of %" PRIu32 " permits %s held", parts->slots, parts->permits,
                        parts->slots == 1 ? "is" : "are");
        break;
    case WATCH_NO_LOCK:
        text_format(text, " is no lock: a ");
        add_type(text, state, key);
        text_format(text, " is there");
        break;
    case WATCH_UNKNOWN:
        text_format(text, ": only %" PRIu32 " of %zu nodes answered, %" PRIu32 " are needed to tell", key->n_answers,
                    state->n_nodes, state->quorum);
        break;
    case WATCH_NOT_JUDGED: text_format(text, ": asking the nodes"); break;
    }
}

static void add_node_event(struct text *text, const struct watch_event *event, uint64_t now_us)
{
    const struct watch_node *node = event->node;

    text_add_known(text, node->name);
    if (event->type == WATCH_NODE_DOWN) {
        text_format(text, " is down: ");
        text_add_known(text, node->error != NULL ? node->error : "no answer");
    } else if (event->type == WATCH_NODE_UP) {
        text_format(text, " is up again");
    } else if (event->type == WATCH_QUARANTINE_BEGAN) {
        text_format(text, " is quarantined, its votes are ignored for ");
        add_span(text, watch_left_us(node->quarantined_until_us, now_us));
        if (node->quarantine_why != NULL) text_format(text, ": %s", node->quarantine_why);
    } else {
        text_format(text, " votes again: its quarantine is over");
    }
}

void watch_line(struct text *text, const struct watch_state *state, const struct watch_event *event,
                const struct watch_time *time)
{
    const struct watch_key *key = event->key;
    char of_day[TIME_SIZE] = "";
    struct tm local;

    if (localtime_r(&time->of_day.tv_sec, &local) != NULL) strftime(of_day, sizeof(of_day), "%F %T", &local);
    text_format(text, "%s  ", of_day);
    if (key == NULL) {
        add_node_event(text, event, time->now_us);
        return;
    }
    watch_show_add_key(text, key);
    if (event->type == WATCH_WAITERS) {
        text_format(text, ": ");
        add_waiters(text, key, time->now_us);
        return;
    }
    if (event->type == WATCH_QUORUM_LOST && key->verdict == WATCH_UNKNOWN)
        text_format(text, ": it is not known whether the quorum lasts");
    watch_show_add_verdict(text, state, key, time->now_us);
    if (event->type == WATCH_RENEWED) text_format(text, ", renewed");
    if (event->previous == NULL) return;
    text_format(text, ", and no longer by ");
    add_owner(text, event->previous);
}

/* ---- JSON ---- */

static const char *event_word(enum watch_event_type type)
{
    static const char *const words[] = {
        [WATCH_HOLDER] = "holder",
        [WATCH_QUORUM_GAINED] = "quorum-gained",
        [WATCH_QUORUM_LOST] = "quorum-lost",
        [WATCH_VOTES] = "votes",
        [WATCH_FREED] = "freed",
        [WATCH_FOUND_NO_LOCK] = "foreign",
        [WATCH_BECAME_UNKNOWN] = "unknown",
        [WATCH_RENEWED] = "renewed",
        [WATCH_WAITERS] = "waiters",
        [WATCH_PARTS] = "holders",
        [WATCH_NODE_DOWN] = "node-down",
        [WATCH_NODE_UP] = "node-up",
        [WATCH_QUARANTINE_BEGAN] = "quarantine-began",
        [WATCH_QUARANTINE_ENDED] = "quarantine-ended",
    };

    return words[type];
}

static json_t *owner_json(const char *holder)
{
    struct text owner = {0};
    json_t *value;

    if (holder == NULL) return json_null();
    owner_short(&owner, holder);
    text_add(&owner, "", 1);
    value = owner.failed ? NULL : document_text(owner.bytes);
    text_clear(&owner);
    return value;
}

/* span_json - return whole milliseconds, or null for WATCH_NEVER. */
static json_t *span_json(uint64_t us)
{
    return us == WATCH_NEVER ? json_null() : json_integer((json_int_t)(us / 1000));
}

static void add_key_fields(json_t **object, const struct watch_state *state, const struct watch_event *event,
                           uint64_t now_us)
{
    static const char *const verdicts[] = {
        [WATCH_UNKNOWN] = "unknown", [WATCH_IS_FREE] = "free",    [WATCH_TAKEN] = "taken",
        [WATCH_QUORUM] = "held",     [WATCH_NO_LOCK] = "foreign", [WATCH_NOT_JUDGED] = "unknown",
    };
    const struct watch_key *key = event->key;
    bool named = key->n_votes > 0, waits = key->waiting_since_us != WATCH_NEVER;

    document_add(object, "key", document_text(key->name));
    document_add(object, "state", document_text(verdicts[key->verdict]));
    document_add(object, "holder", owner_json(named ? key->holder : NULL));
    if (event->type == WATCH_HOLDER) document_add(object, "previous", owner_json(event->previous));
    document_add(object, "votes", document_number(key->n_votes, 0));
    document_add(object, "quorum", document_number(state->quorum, 0));
    document_add(object, "nodes", document_number((int64_t)state->n_nodes, 0));
    document_add(object, "left_ms", named ? span_json(watch_left_us(key->ends_after_us, now_us)) : json_null());
    if (key->parts.permits > 0) document_add(object, "permits", document_number(key->parts.permits, 1));
    if (key->parts.permits > 0) document_add(object, "slots", document_number(key->parts.slots, 0));
    if (key->parts.readers > 0) document_add(object, "readers", document_number(key->parts.readers, 1));
    document_add(object, "waiters", document_number(key->waiters, 0));
    document_add(object, "waiting_ms", waits ? span_json(now_us - key->waiting_since_us) : json_null());
}

void watch_json(struct text *text, const struct watch_state *state, const struct watch_event *event,
                const struct watch_time *time)
{
    char of_day[TIME_SIZE] = "", whole[TIME_SIZE + 24];
    json_t *object = json_object();
    struct tm utc;

    if (gmtime_r(&time->of_day.tv_sec, &utc) != NULL) strftime(of_day, sizeof(of_day), "%FT%T", &utc);
    snprintf(whole, sizeof(whole), "%s.%03ldZ", of_day, time->of_day.tv_nsec / 1000000);
    document_add(&object, "time", document_text(whole));
    document_add(&object, "event", document_text(event_word(event->type)));
    if (event->key != NULL) {
        add_key_fields(&object, state, event, time->now_us);
    } else {
        uint64_t until_us = event->node->quarantined_until_us;

        document_add(&object, "node", document_text(event->node->name));
        document_add(&object, "error", document_text(event->node->error));
        document_add(&object, "quarantine_ms",
                     until_us != 0 ? span_json(watch_left_us(until_us, time->now_us)) : json_integer(0));
        if (event->node->quarantine_why != NULL)
            document_add(&object, "quarantine_why", document_text(event->node->quarantine_why));
    }
    document_write(text, object);
}

/* ---- the table ---- */

enum style { PLAIN, BOLD, GOOD, DOUBTFUL, BAD, FAINT };

struct frame {
    struct text *text;
    const struct watch_look *look;
    size_t row, column;
};

/* watch_show_put - add as much of the part as the line has room for, and clear it. */
static void watch_show_put(struct frame *frame, enum style style, struct text *part)
{
    static const char *const codes[] = {[BOLD] = "1", [GOOD] = "32", [DOUBTFUL] = "33", [BAD] = "31", [FAINT] = "2"};
    size_t room = frame->look->columns - frame->column, columns = text_columns(part, 0);
    bool colored = frame->look->colors && style != PLAIN;

    frame->text->failed |= part->failed;
    while (text_columns(part, 0) > room) {
        do part->length--;
        while (((unsigned char)part->bytes[part->length] & 0xc0) == 0x80);
    }
    if (colored) text_format(frame->text, "\x1b[%sm", codes[style]);
    text_add(frame->text, part->bytes, part->length);
    if (colored) text_format(frame->text, "\x1b[0m");
    frame->column += columns < room ? columns : room;
    text_clear(part);
}

static void put_words(struct frame *frame, enum style style, const char *words)
{
    struct text part = {0};

    text_format(&part, "%s", words);
    watch_show_put(frame, style, &part);
}

static bool is_full(const struct frame *frame)
{
    return frame->look->rows > 0 && frame->row >= frame->look->rows;
}

/* end_line - end the line; the last row has no line end. */
static void end_line(struct frame *frame)
{
    if (frame->look->live) text_format(frame->text, "\x1b[K");
    frame->row++;
    frame->column = 0;
    if (!is_full(frame)) text_format(frame->text, frame->look->live ? "\r\n" : "\n");
}

static void put_bar(struct frame *frame, size_t width, uint64_t left_us, uint64_t lease_us)
{
    const char *full = frame->look->bars ? "\xe2\x96\x88" : "#", *empty = frame->look->bars ? "\xe2\x96\x91" : ".";
    uint64_t filled = left_us >= lease_us ? width : (left_us * width + lease_us / 2) / lease_us;
    struct text part = {0};

    for (size_t i = 0; i < width; i++) text_format(&part, "%s", i < filled ? full : empty);
    watch_show_put(frame, filled * 4 > width ? GOOD : DOUBTFUL, &part);
}

/* Widths of the columns in the line of a node. */
struct columns {
    size_t name, bar;
};

static struct columns watch_show_measure(const struct watch_state *state, const struct watch_look *look)
{
    static const size_t least = 4, narrow = 10, most = 40, notes = 28;
    struct columns columns = {0};
    size_t taken, room;

    for (size_t i = 0; i < state->n_nodes; i++) {
        struct text name = {0};
        size_t width;

        text_add_known(&name, state->nodes[i].name);
        width = text_columns(&name, 0);
        if (width > columns.name) columns.name = width;
        text_clear(&name);
    }
    taken = columns.name + SPAN_COLUMNS + 6; /* blanks before, between and after them */
    room = look->columns > taken ? look->columns - taken : 0;
    /* A narrow terminal has no room for notes, a very narrow one none for bars. */
    if (room >= notes + narrow) {
        columns.bar = room - notes < most ? room - notes : most;
    } else if (room >= least) {
        columns.bar = room < narrow ? room : narrow;
    }
    return columns;
}

static void put_notes(struct frame *frame, const struct watch_key *key, const struct watch_vote *vote,
                      const struct watch_node *node, uint64_t now_us)
{
    struct text part = {0};

    if (node->quarantined_until_us > now_us) {
        text_format(&part, "  quarantined ");
        add_span(&part, node->quarantined_until_us - now_us);
        watch_show_put(frame, DOUBTFUL, &part);
    }
    if (vote->answer == WATCH_HELD && !watch_is_named(key, vote)) {
        text_format(&part, "  ");
        add_owner(&part, vote->holder);
        watch_show_put(frame, DOUBTFUL, &part);
    }
}

/* put_silence - add why there is no answer of a node about the key. */
static void put_silence(struct frame *frame, const struct watch_vote *vote, const struct watch_node *node)
{
    struct text part = {0};

    if (!node->asked) {
        put_words(frame, FAINT, "not asked yet");
        return;
    }
    text_format(&part, "%s", node->up ? "" : "down: ");
    text_add_known(&part, vote->error != NULL ? vote->error : "no answer");
    watch_show_put(frame, BAD, &part);
}

static void put_node(struct frame *frame, const struct watch_state *state, const struct watch_key *key, size_t index,
                     const struct columns *columns, uint64_t now_us)
{
    const struct watch_node *node = &state->nodes[index];
    const struct watch_vote *vote = &key->votes[index];
    uint64_t left_us = watch_left_us(vote->ends_after_us, now_us);
    struct text part = {0};

    text_format(&part, "  ");
    text_add_known(&part, node->name);
    text_pad(&part, 0, columns->name + 4);
    watch_show_put(frame, PLAIN, &part);
    if (vote->answer == WATCH_HELD) {
        put_bar(frame, columns->bar, left_us, key->lease_us);
        text_format(&part, "%s", columns->bar > 0 ? "  " : "");
        add_span(&part, left_us);
        watch_show_put(frame, PLAIN, &part);
    } else if (vote->answer == WATCH_SILENT) {
        put_silence(frame, vote, node);
    } else if (vote->answer == WATCH_FOREIGN) {
        text_format(&part, "no lock: a ");
        text_add_known(&part, vote->type != NULL ? vote->type : "value of another type");
        watch_show_put(frame, BAD, &part);
    } else {
        put_words(frame, FAINT, "free");
    }
    put_notes(frame, key, vote, node, now_us);
    end_line(frame);
}

static void put_verdict(struct frame *frame, const struct watch_state *state, const struct watch_key *key,
                        uint64_t now_us)
{
    static const enum style styles[] = {[WATCH_UNKNOWN] = BAD, [WATCH_IS_FREE] = PLAIN, [WATCH_TAKEN] = DOUBTFUL,
                                        [WATCH_QUORUM] = GOOD, [WATCH_NO_LOCK] = BAD,   [WATCH_NOT_JUDGED] = FAINT};
    struct text part = {0};

    watch_show_add_key(&part, key);
    watch_show_put(frame, BOLD, &part);
    watch_show_add_verdict(&part, state, key, now_us);
    watch_show_put(frame, styles[key->verdict], &part);
}

static void put_key(struct frame *frame, const struct watch_state *state, const struct watch_key *key,
                    const struct columns *columns, uint64_t now_us)
{
    struct text part = {0};

    put_verdict(frame, state, key, now_us);
    end_line(frame);
    for (size_t i = 0; i < state->n_nodes && !is_full(frame); i++) put_node(frame, state, key, i, columns, now_us);
    if (key->waiters > 0 && !is_full(frame)) {
        text_format(&part, "  ");
        add_waiters(&part, key, now_us);
        watch_show_put(frame, DOUBTFUL, &part);
        end_line(frame);
    }
}

/* put_briefly - add the answer of a node about the key in that many columns. */
static void put_briefly(struct frame *frame, const struct watch_key *key, const struct watch_vote *vote,
                        const struct watch_node *node, size_t width, uint64_t now_us)
{
    const char *word = vote->answer == WATCH_FREE      ? "free"
                       : vote->answer == WATCH_HELD    ? "held"
                       : vote->answer == WATCH_FOREIGN ? "type"
                       : node->up || !node->asked      ? "?   "
                                                       : "down";
    struct text part = {0};

    if (watch_is_named(key, vote)) {
        put_bar(frame, width, watch_left_us(vote->ends_after_us, now_us), key->lease_us);
    } else {
        text_format(&part, "%.*s", (int)width, word);
        watch_show_put(frame, vote->answer == WATCH_FREE ? FAINT : vote->answer == WATCH_HELD ? DOUBTFUL : BAD, &part);
    }
    put_words(frame, PLAIN, " ");
}

/* put_key_briefly - add a key in one line: the nodes in their order, then the key. */
static void put_key_briefly(struct frame *frame, const struct watch_state *state, const struct watch_key *key,
                            uint64_t now_us)
{
    size_t width = state->n_nodes <= BRIEF_NODES ? 4 : 1;

    for (size_t i = 0; i < state->n_nodes; i++)
        put_briefly(frame, key, &key->votes[i], &state->nodes[i], width, now_us);
    put_words(frame, PLAIN, " ");
    put_verdict(frame, state, key, now_us);
    if (key->waiters > 0) {
        struct text part = {0};

        text_format(&part, "; ");
        add_waiters(&part, key, now_us);
        watch_show_put(frame, DOUBTFUL, &part);
    }
    end_line(frame);
}

/* count_rows - return the rows of the title and all keys. */
static size_t count_rows(const struct watch_state *state)
{
    size_t rows = 1 + state->n_keys * (2 + state->n_nodes);

    for (size_t i = 0; i < state->n_keys; i++) rows += state->keys[i].waiters > 0;
    return rows;
}

static void put_title(struct frame *frame, const struct watch_state *state, const struct watch_look *look,
                      const struct watch_time *time)
{
    char of_day[TIME_SIZE] = "";
    struct text part = {0};
    struct tm local;

    if (localtime_r(&time->of_day.tv_sec, &local) != NULL) strftime(of_day, sizeof(of_day), "%F %T", &local);
    text_format(&part, "quorlock watch  %s  every ", of_day);
    add_span(&part, (uint64_t)look->interval_ms * 1000);
    text_format(&part, "  q ends it");
    if (1 + state->n_keys > look->rows) text_format(&part, "  %zu keys: more than there is room for", state->n_keys);
    watch_show_put(frame, FAINT, &part);
    end_line(frame);
}

/* put_lines - add the latest events that have room, the newest last. */
static void put_lines(struct frame *frame, const struct watch_look *look)
{
    size_t room = look->rows > frame->row + 1 ? look->rows - frame->row - 1 : 0;
    size_t n = look->n_lines < room ? look->n_lines : room;

    if (n > 0) end_line(frame);
    for (; n > 0; n--) {
        struct text part = {0};

        text_add(&part, look->lines[n - 1].bytes, look->lines[n - 1].length);
        watch_show_put(frame, FAINT, &part);
        end_line(frame);
    }
}

void watch_table(struct text *text, const struct watch_state *state, const struct watch_look *look,
                 const struct watch_time *time)
{
    struct columns columns = watch_show_measure(state, look);
    struct frame frame = {.text = text, .look = look};
    bool brief = look->live && count_rows(state) > look->rows;

    if (look->live) put_title(&frame, state, look, time);
    for (size_t i = 0; i < state->n_keys && !is_full(&frame); i++) {
        if (brief) {
            put_key_briefly(&frame, state, &state->keys[i], time->now_us);
            continue;
        }
        if (i > 0 || look->live) end_line(&frame);
        if (!is_full(&frame)) put_key(&frame, state, &state->keys[i], &columns, time->now_us);
    }
    if (look->live && !is_full(&frame)) put_lines(&frame, look);
}
