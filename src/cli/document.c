/* SPDX-License-Identifier: BSD-3-Clause */
#include "document.h"

#include <string.h>

json_t *document_text(const char *string)
{
    struct text valid = {0};
    json_t *value = NULL;

    if (string == NULL) return json_null();
    text_add_utf8(&valid, string, strlen(string));
    if (!valid.failed) value = json_stringn(valid.length > 0 ? valid.bytes : "", valid.length);
    text_clear(&valid);
    return value;
}

json_t *document_number(int64_t number, int64_t least)
{
    return number < least ? json_null() : json_integer(number);
}

json_t *document_truth(int truth)
{
    return truth < 0 ? json_null() : json_boolean(truth != 0);
}

json_t *document_read(const char *string)
{
    return json_loads(string, 0, NULL);
}

const char *document_text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

int64_t document_number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return value != NULL && json_typeof(value) == JSON_INTEGER ? json_integer_value(value) : -1;
}

int document_truth_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL || json_typeof(value) == JSON_NULL) return -1;
    return json_typeof(value) == JSON_TRUE;
}

static void lose_unless(bool added, json_t **whole)
{
    if (added) return;
    json_decref(*whole);
    *whole = NULL;
}

void document_add(json_t **object, const char *name, json_t *value)
{
    lose_unless(json_object_set_new(*object, name, value) == 0, object);
}

void document_append(json_t **array, json_t *value)
{
    lose_unless(json_array_append_new(*array, value) == 0, array);
}

/* collect - add JSON for a terminal. */
static int collect(const char *bytes, size_t length, void *text)
{
    text_add_json(text, bytes, length);
    return 0;
}

/* Use a callback, not jansson's own buffer, which ignores that it had no memory for the name of a member. */
void document_write(struct text *text, json_t *document)
{
    if (document == NULL || json_dump_callback(document, collect, text, JSON_REAL_PRECISION(12)) != 0)
        text->failed = true;
    text_format(text, "\n");
    json_decref(document);
}
