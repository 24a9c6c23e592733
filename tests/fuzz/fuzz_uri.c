/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_uri.c - addresses of every shape: what is said of those that cannot be read, and what of those that can
 *
 * An address is made of its parts in any order, with a secret among them. Wherever that may be a password, no
 * error shows it.
 */
#include "feed.h"
#include "redis/link/uri.h"

#define ADDRESS_SIZE 600

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const struct uri *uri, const struct alloc *alloc)
{
    struct uri again = {.kind = URI_NUMERIC};
    char error[320] = "";

    CHECK(uri->host != NULL && uri->name != NULL && *uri->host != '\0');
    if (uri->kind == URI_UNIX) {
        CHECK(uri->host[0] == '/' || strchr(uri->host, '/') != NULL);
        return;
    }
    CHECK(uri->port != 0);
    /* The name is an address, the same one, with this very name. */
    snprintf(error, sizeof(error), "%s%s", uri->tls ? "" : "redis://", uri->name);
    CHECK(uri_parse(&again, alloc, error, NULL, 0) == QUORLOCK_OK);
    CHECK(strcmp(again.name, uri->name) == 0 && uri_same(uri, &again) && uri_same(&again, uri));
    CHECK(again.db == uri->db && again.tls == uri->tls && again.password == NULL && again.user == NULL);
    uri_clear(&again, alloc);
}

static void check_parsed(struct uri *uri, const struct alloc *alloc, const char *text, bool secret)
{
    check_name(uri, alloc);
    if (uri->password != NULL) {
        CHECK(*uri->password != '\0');
        CHECK(uri_reveals_password(uri, uri->password, strlen(uri->password)));
    }
    CHECK(uri->db <= 1000000);
    CHECK(!uri_reveals_password(uri, "", 0));
    /* Of a unix socket the path is shown, whatever it holds. */
    if (secret && uri->kind != URI_UNIX) CHECK(!feed_shows_secret(uri->name));
    (void)uri_reveals_password(uri, text, strlen(text));
    uri_clear(uri, alloc);
    CHECK(uri->password == NULL && uri->name == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    struct alloc alloc;
    struct uri uri = {.kind = URI_NUMERIC};
    char text[ADDRESS_SIZE] = "", error[512] = "";
    /* With little room the error is cut, not lost. */
    size_t room = 1 + feed_byte(&feed) * 2u;
    int status;

    alloc_init(&alloc, NULL);
    while (feed.left > 0 && strlen(text) + 16 < sizeof(text)) feed_add(&feed, text, sizeof(text));
    status = uri_parse(&uri, &alloc, text, error, room);
    CHECK(strlen(error) < room);
    if (status == QUORLOCK_OK) {
        CHECK(error[0] == '\0');
        check_parsed(&uri, &alloc, text, feed_is_secret(text));
        return 0;
    }
    CHECK(status == QUORLOCK_ERR_INVAL);
    CHECK(uri.host == NULL && uri.name == NULL && uri.password == NULL);
    CHECK(error[0] != '\0' || room == 1);
    for (const char *at = error; *at != '\0'; at++) CHECK((unsigned char)*at >= 0x20 && *at != 0x7f);
    if (feed_is_secret(text) && feed_shows_secret(error)) {
        fprintf(stderr, "the address %s has the error: %s\n", text, error);
        abort();
    }
    CHECK(uri_parse(&uri, &alloc, text, NULL, 0) == status);
    return 0;
}
