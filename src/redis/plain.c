/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain.c - the plain dialect: a string at the key
 */
#include <stdio.h>
#include <string.h>

#include "dialect.h"
#include "errors.h"
#include "scripts.h"

enum plain_script { PLAIN_EXTEND, PLAIN_RELEASE, PLAIN_PEEK, PLAIN_BREAK, PLAIN_SCRIPTS };

static const struct dialect_script plain_scripts[PLAIN_SCRIPTS] = {
    [PLAIN_EXTEND] = {"extend", script_extend, sizeof script_extend - 1},
    [PLAIN_RELEASE] = {"release", script_release, sizeof script_release - 1},
    [PLAIN_PEEK] = {"peek", script_peek, sizeof script_peek - 1},
    [PLAIN_BREAK] = {"break", script_break, sizeof script_break - 1},
};

static void plain_begin_script(struct bytes *out, const struct node_request *request,
                               const struct dialect_shas *shas, enum plain_script script, size_t n_args)
{
    bytes_command(out, 4 + n_args);
    if (request->whole_script) {
        bytes_text(out, "EVAL");
        bytes_word(out, plain_scripts[script].text, plain_scripts[script].length);
    } else {
        bytes_text(out, "EVALSHA");
        bytes_word(out, shas->sha[script], DIALECT_SHA_LENGTH);
    }
    bytes_text(out, "1");
    bytes_word(out, request->key, request->key_length);
}

static void plain_build(struct bytes *out, const struct node_request *request, const struct dialect_shas *shas)
{
    switch (request->op) {
    case NODE_ACQUIRE:
        bytes_command(out, 6);
        bytes_text(out, "SET");
        bytes_word(out, request->key, request->key_length);
        bytes_word(out, request->owner, request->owner_length);
        bytes_text(out, "NX");
        bytes_text(out, "PX");
        bytes_number(out, request->lease_ms);
        break;
    case NODE_EXTEND:
        plain_begin_script(out, request, shas, PLAIN_EXTEND, 2);
        bytes_word(out, request->owner, request->owner_length);
        bytes_number(out, request->lease_ms);
        break;
    case NODE_RELEASE:
        plain_begin_script(out, request, shas, PLAIN_RELEASE, 1);
        bytes_word(out, request->owner, request->owner_length);
        break;
    case NODE_PEEK: plain_begin_script(out, request, shas, PLAIN_PEEK, 0); break;
    case NODE_BREAK: plain_begin_script(out, request, shas, PLAIN_BREAK, 0); break;
    case NODE_REPAIR:
    case NODE_RAISE:
    case NODE_BOOTSTRAP: break;
    }
}

static const char *plain_op_name(enum node_op op)
{
    switch (op) {
    case NODE_ACQUIRE: return "acquire (SET)";
    case NODE_EXTEND: return "extend (script)";
    case NODE_RELEASE: return "release (script)";
    case NODE_PEEK: return "inspect (script)";
    case NODE_BREAK: return "break (script)";
    case NODE_REPAIR: return "repair";
    case NODE_RAISE: return "raise (script)";
    case NODE_BOOTSTRAP: return "bootstrap (script)";
    }
    return "request";
}

static void plain_judge_error(enum node_op op, const struct reply_item *item, struct node_reply *ret,
                              char *text, size_t text_size)
{
    struct error_class class = error_classify(item->text, item->length);
    ret->fault = class.fault;
    ret->error = text;
    /* An error nobody listed does not say whether anything was executed. */
    ret->outcome = class.fault == NODE_FAULT_OTHER ? NODE_UNKNOWN : NODE_ERROR;
    if (class.noscript && op != NODE_ACQUIRE) {
        ret->outcome = NODE_NOSCRIPT;
        ret->fault = NODE_FAULT_NONE;
    }
    if (class.fault == NODE_FAULT_FOREIGN)
        snprintf(text, text_size, "the key holds a value that is no string: another type, or another dialect");
    else
        error_describe(text, text_size, plain_op_name(op), item->text, item->length);
}

/* {holder, ttl} and for break {holder or nil, ttl, type} */
static bool plain_judge_holder(enum node_op op, const struct reply *reply, struct node_reply *ret, char *text,
                               size_t text_size)
{
    const struct reply_item *holder = &reply->elements[0], *ttl = &reply->elements[1],
                            *kind = &reply->elements[2];
    size_t n_wanted = op == NODE_BREAK ? 3 : 2;
    if (reply->n_elements != n_wanted || ttl->type != REPLY_INTEGER) return false;
    if (op == NODE_BREAK && kind->type != REPLY_STRING) return false;
    bool no_holder = op == NODE_BREAK && holder->type == REPLY_NIL;
    if (holder->type != REPLY_STRING && !no_holder) return false;
    ret->outcome = (op == NODE_PEEK || op == NODE_BREAK) ? NODE_YES : NODE_OTHER;
    ret->ttl_ms = ttl->integer < -1 ? -2 : ttl->integer;
    if (no_holder) {
        char name[32];
        snprintf(text, text_size, "a %s", error_printable(name, sizeof name, kind->text, kind->length));
        ret->error = text;
    } else {
        ret->holder = holder->text;
        ret->holder_length = holder->length;
    }
    return true;
}

/* False: no reply that this request can have. */
static bool plain_judge_value(enum node_op op, const struct reply *reply, struct node_reply *ret, char *text,
                              size_t text_size)
{
    const struct reply_item *self = &reply->self;
    if (op == NODE_ACQUIRE) {
        ret->outcome = self->type == REPLY_NIL ? NODE_OTHER : NODE_YES;
        return self->type == REPLY_NIL ||
               (self->type == REPLY_STATUS && self->length == 2 && memcmp(self->text, "OK", 2) == 0);
    }
    if (self->type == REPLY_ARRAY) return plain_judge_holder(op, reply, ret, text, text_size);
    if (self->type != REPLY_INTEGER) return false;
    ret->outcome = self->integer ? NODE_YES : NODE_MISSING;
    return self->integer == 0 || (self->integer == 1 && (op == NODE_EXTEND || op == NODE_RELEASE));
}

static void plain_judge(enum node_op op, const struct reply *reply, struct node_reply *ret, char *text,
                        size_t text_size)
{
    *ret = (struct node_reply){.ttl_ms = -2};
    if (reply->self.type == REPLY_ERROR) {
        plain_judge_error(op, &reply->self, ret, text, text_size);
        return;
    }
    if (plain_judge_value(op, reply, ret, text, text_size)) return;
    snprintf(text, text_size, "%s: a reply that does not fit the request: something between us and the server?",
             plain_op_name(op));
    *ret = (struct node_reply){.outcome = NODE_ERROR, .fault = NODE_FAULT_PROTO, .error = text, .ttl_ms = -2};
}

const struct dialect dialect_plain = {
    .name = "plain",
    .n_scripts = PLAIN_SCRIPTS,
    .scripts = plain_scripts,
    .build = plain_build,
    .judge = plain_judge,
};
