/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls_fixture.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/system_os.h"

#define BETWEEN_MAX ((size_t)16 << 20)
#define TURNS_MAX   2000000
#define FD          1000

/* The one that the tables below belong to. */
static struct tls_fixture *at;

/* ---- the socket ---- */

static uint64_t wall_us(struct system *system)
{
    (void)system;
    return at->now_s * 1000000u;
}

static int begin_connect(struct system *system, const struct address *address, uint32_t user_timeout_ms)
{
    (void)system;
    (void)address;
    (void)user_timeout_ms;
    return FD;
}

static int finish_connect(struct system *system, int fd)
{
    (void)system;
    (void)fd;
    return 0;
}

static ssize_t move(struct bytes *from, struct bytes *to, const void *bytes, void *ret, size_t size)
{
    if (size > at->step) size = at->step;
    if (to != NULL) bytes_append(to, bytes, size);
    if (from != NULL) memcpy(ret, from->data, size);
    if (from != NULL) bytes_shift(from, size);
    return (ssize_t)size;
}

static ssize_t send_bytes(struct system *system, int fd, const void *bytes, size_t size)
{
    size_t room = at->room - at->up.used;

    (void)system;
    (void)fd;
    assert_true(size > 0);
    if (room == 0) {
        errno = EAGAIN;
        return -1;
    }
    return move(NULL, &at->up, bytes, NULL, size < room ? size : room);
}

static ssize_t receive(struct system *system, int fd, void *ret, size_t size)
{
    (void)system;
    (void)fd;
    if (at->down.used > 0) return move(&at->down, NULL, NULL, ret, size < at->down.used ? size : at->down.used);
    if (at->over) return 0;
    errno = EAGAIN;
    return -1;
}

static void close_socket(struct system *system, int fd, bool reset)
{
    (void)system;
    (void)fd;
    (void)reset;
}

/* ---- the connection ---- */

static void on_conn(void *arg, enum conn_ready ready)
{
    struct tls_fixture *f = arg;
    char buffer[16384];
    ssize_t n;

    if (ready == CONN_CONNECTED) {
        f->progress = conn_finish(&f->conn);
        f->ended = f->progress == CONN_FAILED;
    } else if (ready != CONN_SENT) {
        conn_allow_reads(&f->conn);
        while ((n = conn_read(&f->conn, buffer, sizeof(buffer))) > 0) bytes_append(&f->got, buffer, (size_t)n);
        f->ended = n < 0 || ready == CONN_BROKEN;
    }
    if (f->ended) f->loop.watched = 0;
}

/* ---- certificates ---- */

static X509 *make_x509(EVP_PKEY *key, const struct certificate *issuer, const char *names, const char *common,
                       int64_t at_s)
{
    static int serial;
    X509 *x509 = X509_new();
    X509V3_CTX context;
    const char *values[] = {issuer != NULL ? "CA:FALSE" : "critical,CA:TRUE", names};
    const int kinds[] = {NID_basic_constraints, NID_subject_alt_name};

    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial);
    ASN1_TIME_set(X509_getm_notBefore(x509), at_s - TLS_FIXTURE_DAY_S / 2);
    ASN1_TIME_set(X509_getm_notAfter(x509), at_s + TLS_FIXTURE_DAY_S / 2);
    X509_set_pubkey(x509, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC, (const unsigned char *)common, -1, -1,
                               0);
    X509_set_issuer_name(x509, X509_get_subject_name(issuer != NULL ? issuer->x509 : x509));
    X509V3_set_ctx(&context, issuer != NULL ? issuer->x509 : x509, x509, NULL, NULL, 0);
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        X509_EXTENSION *extension = values[i] != NULL ? X509V3_EXT_conf_nid(NULL, &context, kinds[i], values[i]) : NULL;

        if (extension != NULL) X509_add_ext(x509, extension, -1);
        X509_EXTENSION_free(extension);
    }
    assert_true(X509_sign(x509, issuer != NULL ? issuer->key : key, EVP_sha256()) > 0);
    return x509;
}

void tls_fixture_certify(struct tls_fixture *f, const char *names, const char *common, int64_t at_s)
{
    X509_free(f->leaf.x509);
    if (f->leaf.key == NULL) f->leaf.key = EVP_EC_gen("P-256");
    f->leaf.x509 = make_x509(f->leaf.key, &f->ca, names, common, at_s);
    assert_int_equal(SSL_CTX_use_certificate(f->server_context, f->leaf.x509), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(f->server_context, f->leaf.key), 1);
}

void tls_fixture_write(const struct certificate *certificate, const char *path, bool with_key)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate->x509), 1);
    if (with_key) assert_int_equal(PEM_write_PrivateKey(file, certificate->key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
}

/* ---- the server ---- */

void tls_fixture_deliver(struct tls_fixture *f)
{
    char buffer[4096];
    int n;

    while ((n = BIO_read(SSL_get_wbio(f->server), buffer, sizeof(buffer))) > 0)
        bytes_append(&f->down, buffer, (size_t)n);
}

static void serve(struct tls_fixture *f)
{
    char buffer[4096];
    int n;

    if (f->deaf) return;
    if (f->up.used > 0) BIO_write(SSL_get_rbio(f->server), f->up.data, (int)f->up.used);
    bytes_shift(&f->up, f->up.used);
    ERR_clear_error();
    if (!f->greeted) f->greeted = SSL_accept(f->server) == 1;
    while (f->greeted && (n = SSL_read(f->server, buffer, sizeof(buffer))) > 0)
        bytes_append(&f->heard, buffer, (size_t)n);
    ERR_clear_error();
    tls_fixture_deliver(f);
}

/* ---- turns ---- */

bool tls_fixture_turn(struct tls_fixture *f)
{
    bool moved = f->loop.due || (f->up.used > 0 && !f->deaf);

    if (f->before != NULL) f->before();
    if (f->loop.due) hand_loop_run(&f->loop);
    serve(f);
    if (f->before != NULL) f->before();
    if ((f->loop.watched & WATCH_WRITE) != 0 && f->up.used < f->room) {
        hand_loop_ready(&f->loop, WATCH_WRITE);
        moved = true;
    }
    if (f->before != NULL) f->before();
    if ((f->loop.watched & WATCH_READ) != 0 && (f->down.used > 0 || f->over)) {
        hand_loop_ready(&f->loop, WATCH_READ);
        moved = true;
    }
    return moved;
}

void tls_fixture_run(struct tls_fixture *f)
{
    int turns = 0;

    while (tls_fixture_turn(f))
        if (++turns > TURNS_MAX) fail_msg("it turns and turns");
}

void tls_fixture_say(struct tls_fixture *f, const void *bytes, size_t length)
{
    bytes_append(&f->conn.out, bytes, length);
    assert_int_equal(f->conn.out.fault, BYTES_FINE);
    conn_wake(&f->conn);
}

void tls_fixture_answer(struct tls_fixture *f, const void *bytes, size_t length)
{
    assert_int_equal(SSL_write(f->server, bytes, (int)length), (int)length);
    tls_fixture_deliver(f);
}

void tls_fixture_hang_up(struct tls_fixture *f)
{
    conn_close(&f->conn, false);
    uri_clear(&f->uri, &memory);
    SSL_free(f->server);
    f->server = NULL;
    f->greeted = f->over = f->deaf = f->ended = false;
    bytes_cut(&f->up, 0);
    bytes_cut(&f->down, 0);
    bytes_cut(&f->heard, 0);
    bytes_cut(&f->got, 0);
}

void tls_fixture_begin(struct tls_fixture *f, const char *host)
{
    const struct address address = {.length = 1};
    struct conn_layer *layer;
    char text[128], error[256];

    tls_fixture_hang_up(f);
    f->server = SSL_new(f->server_context);
    SSL_set_bio(f->server, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(f->server);
    snprintf(text, sizeof(text), "rediss://%s", host);
    if (uri_parse(&f->uri, &memory, text, error, sizeof(error)) != 0) fail_msg("%s", error);
    layer = tls_open(f->tls, &f->conn, &f->uri);
    assert_non_null(layer);
    f->progress = CONN_LATER;
    assert_int_equal(conn_open(&f->conn, &address, 0, layer), 0);
}

void tls_fixture_connect(struct tls_fixture *f, const char *host)
{
    tls_fixture_begin(f, host);
    tls_fixture_run(f);
}

/* ---- life ---- */

static void log_line(int level, const char *text, void *arg)
{
    struct tls_fixture *f = arg;

    snprintf(f->logged, sizeof(f->logged), "%d %s", level, text);
}

struct tls_config tls_fixture_config(struct tls_fixture *f)
{
    return (struct tls_config){.ca = f->ca_path, .log = log_line, .arg = f};
}

int tls_fixture_setup(void **state)
{
    struct tls_fixture *f = calloc(1, sizeof(*f));
    struct tls_config config;
    struct alloc_hooks hooks;
    char error[TLS_TEXT_SIZE];

    at = f;
    f->counted.until_failure = -1;
    hooks = counted_hooks(&f->counted);
    alloc_init(&f->alloc, &hooks);
    f->ops = *system_libevent(NULL, NULL).ops; /* for the files */
    f->ops.wall_us = wall_us;
    f->ops.connect = begin_connect;
    f->ops.finish = finish_connect;
    f->ops.send = send_bytes;
    f->ops.recv = receive;
    f->ops.close = close_socket;
    f->system = (struct system){.ops = &f->ops, .alloc = &f->alloc};
    f->loop.fd = FD;
    f->system.loop = hand_loop_functions(&f->loop);
    f->now_s = TLS_FIXTURE_NOW_S;
    f->step = f->room = BETWEEN_MAX;
    bytes_init(&f->up, &memory, BETWEEN_MAX);
    bytes_init(&f->down, &memory, BETWEEN_MAX);
    bytes_init(&f->heard, &memory, BETWEEN_MAX);
    bytes_init(&f->got, &memory, BETWEEN_MAX);
    snprintf(f->folder, sizeof(f->folder), "/tmp/quorlock-tls-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->ca_path, sizeof(f->ca_path), "%s/ca.pem", f->folder);
    f->ca.key = EVP_EC_gen("P-256");
    f->ca.x509 = make_x509(f->ca.key, NULL, NULL, "the test's CA", TLS_FIXTURE_NOW_S);
    tls_fixture_write(&f->ca, f->ca_path, false);
    f->server_context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_mode(f->server_context, SSL_MODE_AUTO_RETRY);
    tls_fixture_certify(f, "DNS:redis.example", "redis", TLS_FIXTURE_NOW_S);
    assert_true(conn_init(&f->conn, &f->system, &f->alloc, on_conn, f));
    config = tls_fixture_config(f);
    if (tls_new(&f->tls, &f->system, &config, error, sizeof(error)) != 0) fail_msg("%s", error);
    *state = f;
    return 0;
}

int tls_fixture_teardown(void **state)
{
    struct tls_fixture *f = *state;

    tls_fixture_hang_up(f);
    conn_clear(&f->conn);
    tls_free(f->tls);
    assert_int_equal(f->counted.out, 0);
    SSL_CTX_free(f->server_context);
    X509_free(f->leaf.x509);
    EVP_PKEY_free(f->leaf.key);
    X509_free(f->ca.x509);
    EVP_PKEY_free(f->ca.key);
    bytes_clear(&f->up);
    bytes_clear(&f->down);
    bytes_clear(&f->heard);
    bytes_clear(&f->got);
    unlink(f->ca_path);
    assert_int_equal(rmdir(f->folder), 0);
    free(f);
    return 0;
}
