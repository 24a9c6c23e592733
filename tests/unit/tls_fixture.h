/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls_fixture.h - a connection over TLS whose socket is in the test's hands, to a server that is OpenSSL itself
 *
 * The socket takes and gives as many bytes at a time as the test says. Certificates are made by the test, and its
 * clock says when they are valid.
 */
#ifndef QUORLOCK_UNIT_TLS_FIXTURE_H
#define QUORLOCK_UNIT_TLS_FIXTURE_H

#include <openssl/ssl.h>

#include "base/system.h"
#include "hand_loop.h"
#include "redis/link/conn.h"
#include "redis/link/tls.h"
#include "redis/link/uri.h"
#include "redis/wire/bytes.h"
#include "test.h"

#define TLS_FIXTURE_NOW_S 1800000000u /* by the clock of the client; certificates are valid for a day around it */
#define TLS_FIXTURE_DAY_S 86400

#define TLS_TEST(name) TEST_WITH(tls_fixture, name, tls_fixture_setup, tls_fixture_teardown)

struct certificate {
    X509 *x509;
    EVP_PKEY *key;
};

struct tls_fixture {
    struct alloc alloc; /* the client's; the hooks count */
    struct counted counted;
    struct system_ops ops;
    struct system system;
    uint64_t now_s;

    char folder[32], ca_path[64];
    struct certificate ca, leaf;
    SSL_CTX *server_context;
    SSL *server;
    bool greeted;       /* by the server */
    struct bytes heard; /* what the client wrote */

    struct bytes up, down; /* between the sockets: to the server, and to the client */
    size_t step;           /* so many bytes at most move in a call */
    size_t room;           /* so many bytes fit between client and server */
    bool over;             /* the server's end is closed, behind what is in `down` */
    bool deaf;             /* the server reads nothing */

    struct hand_loop loop;

    struct tls *tls;
    char logged[TLS_TEXT_SIZE + 64]; /* the latest line; "": none since it was looked at */
    struct uri uri;
    struct conn conn;
    struct bytes got; /* what the client read */
    enum conn_progress progress;
    bool ended;           /* conn_read or conn_finish said so */
    void (*before)(void); /* each call of the connection */
};

int tls_fixture_setup(void **state);
int tls_fixture_teardown(void **state);

/* tls_fixture_certify - the server's certificate, by alternative names as OpenSSL's configuration has them ("DNS:a,
 * IP:1.2.3.4"; NULL: none) and the subject's common name, valid for a day around that time. */
void tls_fixture_certify(struct tls_fixture *, const char *names, const char *common, int64_t at_s);
/* tls_fixture_write - that certificate as a file of the folder. */
void tls_fixture_write(const struct certificate *, const char *path, bool with_key);
/* tls_fixture_begin - opens a client's connection to "rediss://host". tls_fixture_connect: and runs until the handshake
 * is over, either way. */
void tls_fixture_begin(struct tls_fixture *, const char *host);
void tls_fixture_connect(struct tls_fixture *, const char *host);
/* tls_fixture_config - with the test's CA and log. */
struct tls_config tls_fixture_config(struct tls_fixture *);
/* tls_fixture_hang_up - closes it, and forgets what was between the two. */
void tls_fixture_hang_up(struct tls_fixture *);
/* tls_fixture_turn - one turn of the loop and of the server; tls_fixture_run: until nothing moves any more. */
bool tls_fixture_turn(struct tls_fixture *);
void tls_fixture_run(struct tls_fixture *);
/* tls_fixture_say - the client writes. tls_fixture_answer: the server does. */
void tls_fixture_say(struct tls_fixture *, const void *bytes, size_t length);
void tls_fixture_answer(struct tls_fixture *, const void *bytes, size_t length);
/* tls_fixture_deliver - what the server's OpenSSL has to send is put into `down`. */
void tls_fixture_deliver(struct tls_fixture *);

#endif
