/* SPDX-License-Identifier: BSD-3-Clause */
/* ls.c - quorlock ls: the locks on the nodes, sorted by key */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "cli.h"
#include "document.h"
#include "owner.h"
#include "say.h"

struct ls {
    struct session session;
    struct quorlock_listed *rows; /* with key and holder of their own */
    size_t n_rows, room;
    size_t n_locks; /* of these rows; the others are strings of another form, with the mode 0 */
    uint32_t quorum;
    size_t n_nodes;
};

static const char *const state_words[] = {
    [QUORLOCK_LIST_DOWN] = "down", [QUORLOCK_LIST_ERROR] = "error", [QUORLOCK_LIST_LISTED] = "listed"};

static const char *mode_word(const struct quorlock_listed *row)
{
    int mode = row->mode;

    if (mode == 0) return "other";
    if (owner_kept(row->holder) != NULL) return "kept";
    return mode == QUORLOCK_MODE_SHARED ? "shared" : mode == QUORLOCK_MODE_PERMIT ? "permit" : "exclusive";
}

/* ls_token - return the token of the owner, also of one that has released a kept key. */
static const char *ls_token(const struct quorlock_listed *row)
{
    const char *kept = owner_kept(row->holder);

    return kept != NULL ? kept : row->holder;
}

static int ls_compare(const void *a, const void *b)
{
    const struct quorlock_listed *one = a, *other = b;
    int order = strcmp(one->key, other->key);

    return order != 0 ? order : (one->slot > other->slot) - (one->slot < other->slot);
}

/* ls_add_row - copy a row: false: out of memory. */
static bool ls_add_row(struct ls *ls, const struct quorlock_listed *listed)
{
    struct quorlock_listed *row;

    if (ls->n_rows == ls->room) {
        size_t room = ls->room == 0 ? 64 : 2 * ls->room;
        struct quorlock_listed *rows = realloc(ls->rows, room * sizeof(*rows));

        if (rows == NULL) return false;
        ls->rows = rows;
        ls->room = room;
    }
    row = &ls->rows[ls->n_rows];
    *row = *listed;
    row->key = strdup(listed->key);
    row->holder = strdup(listed->holder);
    ls->n_rows++;
    return row->key != NULL && row->holder != NULL;
}

/* ls_keep - copy a part of the list: false: out of memory. */
static bool ls_keep(struct ls *ls, const struct quorlock_list_report *listing)
{
    bool others = listing->more == 0 && ls->session.settings->all;

    for (size_t i = 0; i < listing->n_locks; i++)
        if (!ls_add_row(ls, listing->locks[i])) return false;
    ls->n_locks = ls->n_rows;
    for (size_t i = 0; others && i < listing->n_other_keys; i++)
        if (!ls_add_row(ls, &(struct quorlock_listed){.key = listing->other_keys[i], .holder = ""})) return false;
    return true;
}

/* ---- as text ---- */

enum column { KEY, MODE, HOLDER, LEFT, NODES, N_COLUMNS };

static void ls_add_mode(struct text *cell, const struct quorlock_listed *row)
{
    if (row->mode == QUORLOCK_MODE_SHARED && row->readers > 0)
        text_format(cell, "%" PRIu32 " reader%s", row->readers, row->readers == 1 ? "" : "s");
    else if (row->mode == QUORLOCK_MODE_PERMIT && row->permits > 0)
        text_format(cell, "slot %" PRIu32 " of %" PRIu32, row->slot, row->permits);
    else if (row->mode == QUORLOCK_MODE_PERMIT)
        text_format(cell, "slot %" PRIu32, row->slot);
    else
        text_format(cell, "%s", mode_word(row));
}

static void ls_add_cell(struct text *cell, const void *rows, size_t at, size_t column)
{
    const struct ls *ls = rows;
    const struct quorlock_listed *row = &ls->rows[at];

    if (row->mode == 0 && column > MODE) return;
    switch (column) {
    case KEY: text_add_known(cell, row->key); break;
    case MODE: ls_add_mode(cell, row); break;
    case HOLDER:
        if (row->mode != QUORLOCK_MODE_SHARED) owner_short(cell, ls_token(row));
        break;
    case LEFT:
        if (row->ttl_ms < 0) text_format(cell, "no expiry");
        if (row->ttl_ms >= 0) text_format(cell, "%" PRId64 " ms", row->ttl_ms);
        break;
    default:
        text_format(cell, "%" PRIu32 " of %zu%s", row->nodes, ls->n_nodes,
                    row->nodes < ls->quorum ? ", no quorum: not held" : "");
        break;
    }
}

/* ls_say_nodes - print why a node has listed nothing, or not all. */
static void ls_say_nodes(const struct quorlock_list_report *listing)
{
    for (size_t i = 0; i < listing->n_nodes; i++) {
        const struct quorlock_list_node *node = listing->nodes[i];

        if (node->error != NULL) say_at(LOG_WARNING, "%s %s: %s", node->node, state_words[node->state], node->error);
    }
}

static void ls_show(const struct ls *ls, struct text *text, int status)
{
    static const char *const heads[N_COLUMNS] = {
        [KEY] = "key", [MODE] = "mode", [HOLDER] = "holder", [LEFT] = "left", [NODES] = "nodes"};

    if (ls->n_rows > 0)
        text_add_table(text, heads, N_COLUMNS, ls_add_cell, ls, ls->n_rows);
    else if (status == 0)
        text_format(text, "no locks were found\n");
}

/* ls_say_others - print that strings of another form were skipped, and the first name, or that not all are listed. */
static void ls_say_others(const struct ls *ls, const struct quorlock_list_report *listing)
{
    struct text name = {0};

    if (ls->session.settings->all ? listing->others == listing->n_other_keys : listing->others == 0) return;
    if (ls->session.settings->all) {
        say("%zu of %" PRIu64 " other strings are listed: give a narrower pattern", listing->n_other_keys,
            listing->others);
        return;
    }
    text_add_known(&name, listing->other_keys[0]);
    if (!name.failed)
        say("%" PRIu64 " other string%s with an expiry %s skipped (%.*s): locks of other programs, perhaps: "
            "'quorlock inspect KEY' shows one, 'ls --all' lists them",
            listing->others, listing->others == 1 ? "" : "s", listing->others == 1 ? "was" : "were", (int)name.length,
            name.bytes);
    free(name.bytes);
}

/* ---- as JSON ---- */

static void ls_add_lock(struct text *text, const struct ls *ls, const struct quorlock_listed *row)
{
    json_t *object = json_object();

    document_add(&object, "key", document_text(row->key));
    document_add(&object, "mode", document_text(mode_word(row)));
    if (row->mode == 0) {
        document_write(text, object);
        return;
    }
    document_add(&object, "holder", document_text(ls_token(row)));
    document_add(&object, "ttl_ms", document_number(row->ttl_ms, -1));
    document_add(&object, "nodes", document_number(row->nodes, 0));
    document_add(&object, "held", document_truth(row->nodes >= ls->quorum && owner_kept(row->holder) == NULL));
    if (row->mode == QUORLOCK_MODE_SHARED) document_add(&object, "readers", document_number(row->readers, 1));
    if (row->mode == QUORLOCK_MODE_PERMIT) {
        document_add(&object, "slot", document_number(row->slot, 0));
        document_add(&object, "permits", document_number(row->permits, 1));
    }
    document_write(text, object);
}

static void ls_add_end(struct text *text, const struct ls *ls, const struct quorlock_list_report *listing)
{
    json_t *object = json_object(), *nodes = json_array();

    for (size_t i = 0; i < listing->n_nodes; i++) {
        json_t *node = json_object();

        document_add(&node, "node", document_text(listing->nodes[i]->node));
        document_add(&node, "state", document_text(state_words[listing->nodes[i]->state]));
        document_add(&node, "error", document_text(listing->nodes[i]->error));
        document_append(&nodes, node);
    }
    document_add(&object, "locks", document_number((int64_t)ls->n_locks, 0));
    document_add(&object, "others", document_number((int64_t)listing->others, 0));
    document_add(&object, "quorum", document_number(listing->quorum, 0));
    document_add(&object, "answered", document_number(listing->answered, 0));
    document_add(&object, "nodes", nodes);
    document_write(text, object);
}

/* ---- the verb ---- */

static void ls_answered(int status, const struct quorlock_list_report *listing, void *arg)
{
    struct ls *ls = arg;
    struct text text = {0};
    bool json = ls->session.settings->json;
    int failed;

    if (status != QUORLOCK_ERR_NOMEM && !ls_keep(ls, listing)) ls->session.status = EXIT_SYSTEM;
    if (listing->more != 0) return;
    if (ls->session.status == EXIT_SYSTEM) {
        say("out of memory");
        session_leave(&ls->session);
        return;
    }
    ls->quorum = listing->quorum;
    ls->n_nodes = listing->n_nodes;
    ls_say_nodes(listing);
    if (!json) ls_say_others(ls, listing);
    if (ls->n_rows > 0) qsort(ls->rows, ls->n_rows, sizeof(*ls->rows), ls_compare);
    for (size_t i = 0; i < ls->n_rows && json; i++) ls_add_lock(&text, ls, &ls->rows[i]);
    if (json)
        ls_add_end(&text, ls, listing);
    else
        ls_show(ls, &text, status);
    failed = put(&text);
    ls->session.status = failed != 0 ? failed : session_exit(status);
    session_leave(&ls->session);
}

int verb_ls(const struct settings *settings)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct ls ls;
    const char *pattern = settings->n_words > 0 ? settings->words[0] : NULL;
    int status;

    if (settings->n_words > 1) {
        say("ls takes one pattern, not %zu: write it in quotes, so that the shell does not expand it",
            settings->n_words);
        return EXIT_USAGE;
    }
    status = session_open(&ls.session, settings);
    if (status != 0) return status;
    return session_run(&ls.session,
                       session_check(&ls.session, quorlock_client_list(ls.session.client, pattern, ls_answered, &ls)));
}
