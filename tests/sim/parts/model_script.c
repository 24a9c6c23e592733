/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_script.c - the script cache, and the commands that run scripts
 *
 * Each script is compiled once for all models of a thread; a model only notes which it knows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model_lua.h"
#include "redis/dialect/dialect.h"
#include "scripts.h"

struct compiled {
    struct hashtable_entry by_sha;
    struct link link;
    char sha[MODEL_SHA_LENGTH + 1];
    struct blob text;
    const char *name; /* of ours */
    size_t number;
    int function;
};

static _Thread_local struct {
    size_t users;
    struct alloc alloc;
    struct hashtable by_sha;
    struct list all;
} shared;

void script_open(void)
{
    if (shared.users++ > 0) return;
    alloc_init(&shared.alloc, NULL);
    model_lua_open();
}

void script_close(void)
{
    if (--shared.users > 0) return;
    while (shared.all.count > 0) {
        struct compiled *script = FIRST_OF(&shared.all, struct compiled, link);

        list_remove(&shared.all, &script->link);
        free(script->text.text);
        free(script);
    }
    hashtable_free(&shared.by_sha, &shared.alloc);
    model_lua_close();
}

static struct compiled *find_sha(const char *sha)
{
    HASHTABLE_EACH_OF (struct compiled, script, &shared.by_sha, hash_bytes(HASH_START, sha, MODEL_SHA_LENGTH), by_sha) {
        if (memcmp(script->sha, sha, MODEL_SHA_LENGTH) == 0) return script;
    }
    return NULL;
}

/* Texts are few, and differ in length mostly: no need to hash them. */
static struct compiled *find_text(const struct word *text)
{
    LIST_EACH (struct compiled, script, &shared.all, link) {
        if (blob_is(&script->text, text->text, text->length)) return script;
    }
    return NULL;
}

/* ---- the cache ---- */

/* What a trace calls a script of ours: the same in either dialect. */
static const char *shown_name(const char *name)
{
    static const char front[] = "redisson_";

    return strncmp(name, front, sizeof(front) - 1) == 0 ? name + sizeof(front) - 1 : name;
}

/* What our sources call that text. */
static const char *name_of(const struct word *text)
{
    static const struct dialect *const dialects[] = {&dialect_plain, &dialect_redisson};
    static const struct dialect_script others[] = {DIALECT_SCRIPT(guard), DIALECT_SCRIPT(bootstrap),
                                                   DIALECT_SCRIPT(rights)};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i].length == text->length && memcmp(others[i].text, text->text, text->length) == 0)
            return others[i].name;
    }
    for (size_t d = 0; d < 2; d++) {
        for (size_t i = 0; i < SCRIPTS; i++) {
            const struct dialect_script *script = &dialects[d]->scripts[i];

            if (script->text != NULL && script->length == text->length &&
                memcmp(script->text, text->text, text->length) == 0)
                return shown_name(script->name);
        }
    }
    return NULL;
}

/* The script of that text; NULL: it does not compile, and the error was replied. */
static struct compiled *compile(struct call *call, const struct word *text)
{
    struct compiled *script = find_text(text);
    int function;

    if (script != NULL) return script;
    if (text->length > 1 && memcmp(text->text, "#!", 2) == 0) model_panic("scripts with", "#!", 2);
    if (!model_lua_compile(text, call->out, &function)) return NULL;
    script = model_resized(NULL, sizeof(*script));
    *script = (struct compiled){.number = shared.all.count, .name = name_of(text), .function = function};
    blob_set(&script->text, text->text, text->length);
    model_lua_sha(text, script->sha);
    script->by_sha.hash = hash_bytes(HASH_START, script->sha, MODEL_SHA_LENGTH);
    if (hashtable_reserve(&shared.by_sha, &shared.alloc) != 0) abort();
    hashtable_add(&shared.by_sha, &script->by_sha);
    list_add(&shared.all, &script->link);
    return script;
}

static bool knows(const struct model *model, const struct compiled *script)
{
    return script != NULL && script->number < model->n_knows && model->knows[script->number] != 0;
}

static void learn(struct model *model, const struct compiled *script)
{
    if (script->number >= model->n_knows) {
        size_t n = 2 * script->number + 16;

        model->knows = model_resized(model->knows, n);
        memset(model->knows + model->n_knows, 0, n - model->n_knows);
        model->n_knows = n;
    }
    model->knows[script->number] = 1;
}

static struct compiled *find_by_word(const struct word *sha)
{
    char lower[MODEL_SHA_LENGTH];

    if (sha->length != MODEL_SHA_LENGTH) return NULL;
    for (size_t i = 0; i < MODEL_SHA_LENGTH; i++) {
        char byte = sha->text[i];

        lower[i] = byte >= 'A' && byte <= 'F' ? (char)(byte - 'A' + 'a') : byte;
    }
    return find_sha(lower);
}

const char *script_name(const struct word *text_or_sha)
{
    const struct compiled *script = find_by_word(text_or_sha);

    if (script == NULL) script = find_text(text_or_sha);
    return script != NULL ? script->name : name_of(text_or_sha);
}

/* The number of keys; false: the error was replied. */
static bool count_keys(struct call *call, size_t *ret)
{
    int64_t n;

    if (!call_number(call, 2, &n)) return false;
    if (n > (int64_t)call->n_words - 3) {
        out_error(call->out, "ERR Number of keys can't be greater than number of args");
        return false;
    }
    if (n < 0) {
        out_error(call->out, "ERR Number of keys can't be negative");
        return false;
    }
    *ret = (size_t)n;
    return true;
}

static void execute(struct call *call, const struct compiled *script, size_t n_keys)
{
    const struct model_manners *manners = &call->model->manners;

    if (manners->replica && manners->master_down)
        out_error(call->out, ERROR_STALE);
    else
        model_lua_run(call, script->function, script->sha, n_keys);
}

void run_eval(struct call *call)
{
    const struct compiled *script;
    size_t n_keys;

    if (!count_keys(call, &n_keys)) return;
    script = compile(call, &call->words[1]);
    if (script == NULL) return;
    learn(call->model, script);
    execute(call, script, n_keys);
}

void run_evalsha(struct call *call)
{
    const struct compiled *script = find_by_word(&call->words[1]);
    size_t n_keys = 0;

    if (call->words[1].length == MODEL_SHA_LENGTH && !count_keys(call, &n_keys)) return;
    if (knows(call->model, script))
        execute(call, script, n_keys);
    else
        out_error(call->out, "NOSCRIPT No matching script. Please use EVAL.");
}

void run_script_load(struct call *call)
{
    const struct compiled *script = compile(call, &call->words[2]);

    if (script == NULL) return;
    learn(call->model, script);
    out_bulk(call->out, script->sha, MODEL_SHA_LENGTH);
}

void run_script_exists(struct call *call)
{
    out_array(call->out, call->n_words - 2);
    for (size_t i = 2; i < call->n_words; i++) {
        const struct compiled *script = find_by_word(&call->words[i]);

        /* Here capital letters are not the same. */
        out_number(call->out,
                   knows(call->model, script) && memcmp(script->sha, call->words[i].text, MODEL_SHA_LENGTH) == 0);
    }
}

void run_script_flush(struct call *call)
{
    struct model *model = call->model;

    if (call->n_words > 3 ||
        (call->n_words == 3 && !word_is(&call->words[2], "sync") && !word_is(&call->words[2], "async"))) {
        out_error(call->out, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    if (model->n_knows != 0) memset(model->knows, 0, model->n_knows);
    out_status(call->out, "OK");
}
