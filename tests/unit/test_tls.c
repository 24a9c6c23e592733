/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tls.c - TLS over a socket that is in the test's hands: bytes cut anywhere, full sockets, names, certificates
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node_fixture.h"
#include "redis/link/dial.h"
#include "tls_fixture.h"

static char pattern[300000];

static void fill_pattern(void)
{
    for (size_t i = 0; i < sizeof(pattern); i++) pattern[i] = (char)(i * 7 + i / 251);
}

static void assert_bytes(const struct bytes *got, const void *wanted, size_t length)
{
    assert_int_equal(got->used, length);
    assert_memory_equal(got->data, wanted, length);
}

static void assert_open(const struct tls_fixture *f)
{
    if (f->progress != CONN_DONE || f->ended) fail_msg("not open: %s", conn_why(&f->conn));
}

static void assert_refused(const struct tls_fixture *f, enum fault fault, const char *part)
{
    assert_int_equal(f->progress, CONN_FAILED);
    assert_contains(conn_why(&f->conn), part);
    assert_int_equal(f->conn.fault, fault);
}

/* ---- bytes ---- */

TLS_TEST(bytes_may_be_cut_anywhere)
{
    static const size_t steps[] = {1, 2, 3, 5, 6, 100, 1000, 16384, 16385, 1000000};

    fill_pattern();
    for (size_t i = 0; i < LENGTH(steps); i++) {
        size_t length = steps[i] < 100 ? 20000 : sizeof(pattern);

        f->step = steps[i];
        tls_fixture_connect(f, "redis.example");
        assert_open(f);
        tls_fixture_say(f, pattern, length);
        tls_fixture_answer(f, pattern, length);
        tls_fixture_run(f);
        assert_bytes(&f->heard, pattern, length);
        assert_bytes(&f->got, pattern, length);
        assert_int_equal(f->loop.watched, WATCH_READ);
    }
}

/* The buffer grows and moves while its first bytes wait. */
TLS_TEST(what_a_full_socket_does_not_take_leaves_later)
{
    size_t said = 0;

    fill_pattern();
    tls_fixture_connect(f, "redis.example");
    assert_open(f);
    f->room = 1000;
    f->deaf = true;
    for (size_t n = 2000; said + n < sizeof(pattern); n *= 2) {
        tls_fixture_say(f, pattern + said, n);
        said += n;
        tls_fixture_run(f);
        assert_int_equal(f->up.used, f->room);
        assert_int_equal(f->loop.watched, WATCH_READ | WATCH_WRITE);
    }
    f->deaf = false;
    tls_fixture_run(f);
    assert_bytes(&f->heard, pattern, said);
    assert_int_equal(f->loop.watched, WATCH_READ);
}

TLS_TEST(it_reads_while_it_cannot_write)
{
    fill_pattern();
    tls_fixture_connect(f, "redis.example");
    f->room = 1000;
    f->deaf = true;
    tls_fixture_say(f, pattern, sizeof(pattern));
    tls_fixture_run(f);
    tls_fixture_answer(f, "now", 3);
    tls_fixture_run(f);
    assert_bytes(&f->got, "now", 3);
    assert_int_equal(f->heard.used, 0);
}

/* More than is read in one event: nothing that was taken from the socket may be left in OpenSSL. */
TLS_TEST(what_openssl_holds_is_read_to_its_end)
{
    fill_pattern();
    tls_fixture_connect(f, "redis.example");
    f->step = 700;
    for (int i = 0; i < 2000; i++) tls_fixture_answer(f, pattern, 100);
    while (f->down.used > 0) {
        size_t before = f->down.used;

        hand_loop_ready(&f->loop, WATCH_READ);
        assert_true(f->down.used < before);
    }
    assert_int_equal(f->got.used, 200000);
}

static void leave_an_error(void)
{
    ERR_raise(ERR_LIB_USER, 1);
}

TLS_TEST(errors_that_others_left_are_not_taken_for_ours)
{
    f->before = leave_an_error;
    tls_fixture_connect(f, "redis.example");
    assert_open(f);
    tls_fixture_say(f, "hello", 5);
    tls_fixture_answer(f, "hallo", 5);
    tls_fixture_run(f);
    assert_bytes(&f->heard, "hello", 5);
    assert_bytes(&f->got, "hallo", 5);
    assert_false(f->ended);
}

TLS_TEST(keys_are_changed_under_way)
{
    tls_fixture_connect(f, "redis.example");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(SSL_key_update(f->server, SSL_KEY_UPDATE_REQUESTED), 1);
        tls_fixture_answer(f, "x", 1);
        f->deaf = true;
        f->room = f->up.used + 1;
        tls_fixture_say(f, "y", 1);
        tls_fixture_run(f);
        f->deaf = false;
        tls_fixture_run(f);
        f->room = 1000000;
    }
    assert_bytes(&f->got, "xxx", 3);
    assert_bytes(&f->heard, "yyy", 3);
}

/* ---- ends ---- */

TLS_TEST(a_server_may_close_with_and_without_a_farewell)
{
    for (int times = 0; times < 2; times++) {
        tls_fixture_connect(f, "redis.example");
        assert_open(f);
        tls_fixture_answer(f, "last", 4);
        if (times == 1) SSL_shutdown(f->server);
        tls_fixture_deliver(f);
        f->over = true;
        tls_fixture_run(f);
        assert_true(f->ended);
        assert_bytes(&f->got, "last", 4);
        assert_null(conn_why(&f->conn));
    }
}

TLS_TEST(a_server_that_closes_in_the_handshake_is_said_to)
{
    tls_fixture_begin(f, "redis.example");
    f->over = true;
    tls_fixture_run(f);
    assert_refused(
        f, FAULT_UNREACHABLE,
        "TLS: the server closed the connection during the handshake: has the server TLS on this port, and room "
        "below its maxclients?");
}

TLS_TEST(a_changed_byte_is_noticed)
{
    tls_fixture_connect(f, "redis.example");
    tls_fixture_answer(f, "+OK", 3);
    f->down.data[f->down.used - 1] ^= 1;
    tls_fixture_run(f);
    assert_true(f->ended);
    assert_int_equal(f->got.used, 0);
    assert_contains(conn_why(&f->conn), "TLS: decryption failed or bad record mac");
    assert_int_equal(f->conn.fault, FAULT_PROTO);
}

TLS_TEST(a_server_without_tls_is_recognised)
{
    tls_fixture_begin(f, "redis.example");
    f->deaf = true;
    bytes_append(&f->down, "-ERR unknown command\r\n", 22);
    tls_fixture_run(f);
    assert_refused(f, FAULT_PROTO,
                   "TLS: wrong version number: the server does not speak TLS on this port: write redis://");
}

/* ---- whom it trusts ---- */

TLS_TEST(the_name_is_verified)
{
    static const struct {
        const char *names, *common, *host;
        bool fine;
    } rows[] = {
        {"DNS:redis.example", "x", "redis.example", true},
        {"DNS:REDIS.Example", "x", "redis.example", true},
        {"DNS:a.example, DNS:redis.example, IP:10.0.0.1", "x", "redis.example", true},
        {"DNS:*.b.example", "x", "redis.b.example", true},
        {NULL, "redis.example", "redis.example", true},
        {"IP:10.0.0.1", "x", "10.0.0.1", true},
        {"IP:fd00::1", "x", "[fd00::1]", true},
        {"DNS:other.example", "redis.example", "redis.example", false},
        {"DNS:redis.example.com", "x", "redis.example", false},
        {"DNS:example", "x", "redis.example", false},
        {"DNS:*.b.example", "x", "a.redis.b.example", false},
        {"DNS:*.b.example", "x", "b.example", false},
        {"DNS:r*.b.example", "x", "redis.b.example", false},
        {"DNS:*s.b.example", "x", "redis.b.example", false},
        {"DNS:*", "x", "redis", false},
        {"DNS:10.0.0.1", "10.0.0.1", "10.0.0.1", false},
        {"IP:10.0.0.1", "x", "10.0.0.2", false},
        {"IP:10.0.0.1", "redis.example", "redis.example", true}, /* no DNS name: OpenSSL looks at the subject */
        {NULL, "10.0.0.1", "10.0.0.1", false},
        {NULL, "", "redis.example", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const char *names = rows[i].names != NULL ? rows[i].names : "none";

        tls_fixture_certify(f, rows[i].names, rows[i].common, TLS_FIXTURE_NOW_S);
        tls_fixture_connect(f, rows[i].host);
        if ((f->progress == CONN_DONE) != rows[i].fine)
            fail_msg("%s, subject %s: %s", names, rows[i].common, rows[i].host);
        if (!rows[i].fine) assert_refused(f, FAULT_AUTH, "mismatch");
    }
}

TLS_TEST(a_wrong_name_is_told_with_the_right_ones)
{
    tls_fixture_certify(f, "DNS:a.example, IP:10.0.0.1, IP:fd00::1, email:x@example", "redis", TLS_FIXTURE_NOW_S);
    tls_fixture_connect(f, "b.example");
    assert_refused(f, FAULT_AUTH,
                   "hostname mismatch: it is for a.example, 10.0.0.1, fd00::1, not for b.example: write");
    assert_contains(conn_why(&f->conn), "--tls-name (tls_name)");
    tls_fixture_certify(f, NULL, "red\nis", TLS_FIXTURE_NOW_S);
    tls_fixture_connect(f, "10.0.0.1");
    assert_refused(f, FAULT_AUTH, "IP address mismatch: it is for red");
    assert_null(strchr(conn_why(&f->conn), '\n'));
}

TLS_TEST(the_clock_is_the_systems)
{
    tls_fixture_connect(f, "redis.example");
    assert_open(f);
    tls_fixture_certify(f, "DNS:redis.example", "x", TLS_FIXTURE_NOW_S - TLS_FIXTURE_DAY_S);
    tls_fixture_connect(f, "redis.example");
    assert_refused(f, FAULT_AUTH, "certificate has expired (2027-01-14 20:00:00 UTC): give the server a new one");
    tls_fixture_certify(f, "DNS:redis.example", "x", TLS_FIXTURE_NOW_S + TLS_FIXTURE_DAY_S);
    tls_fixture_connect(f, "redis.example");
    assert_refused(f, FAULT_AUTH, "certificate is not yet valid: it is from 2027-01-15 20:00:00 UTC on: is the clock");
    f->now_s += TLS_FIXTURE_DAY_S;
    tls_fixture_connect(f, "redis.example");
    assert_refused(f, FAULT_AUTH, "certificate chain is refused: certificate has expired"); /* the CA's */
}

TLS_TEST(old_versions_are_refused)
{
    static const struct {
        int version;
        bool fine;
    } rows[] = {{TLS1_VERSION, false}, {TLS1_1_VERSION, false}, {TLS1_2_VERSION, true}, {TLS1_3_VERSION, true}};

    assert_int_equal(SSL_CTX_set_cipher_list(f->server_context, "ALL:@SECLEVEL=0"), 1);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        SSL_CTX_set_min_proto_version(f->server_context, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(f->server_context, rows[i].version);
        tls_fixture_connect(f, "redis.example");
        if (rows[i].fine)
            assert_open(f);
        else
            assert_refused(f, FAULT_PROTO, "TLS 1.2 or 1.3");
    }
}

/* ---- certificates that change ---- */

/* Reads them again; what is logged then, "" for nothing. */
static void assert_refreshed(struct tls_fixture *f, const char *logged)
{
    f->logged[0] = '\0';
    tls_refresh(f->tls);
    if (logged[0] != '\0')
        assert_contains(f->logged, logged);
    else
        assert_string_equal(f->logged, "");
}

TLS_TEST(files_are_read_again_when_they_changed)
{
    FILE *file;

    assert_refreshed(f, "");
    file = fopen(f->ca_path, "w");
    fputs("nothing\n", file);
    fclose(file);
    assert_refreshed(
        f, "3 the new TLS certificates are bad, the old ones stay in use: --tls-ca (tls_ca): \"/tmp/quorlock-tls-");
    assert_refreshed(f, "");
    tls_fixture_connect(f, "redis.example");
    assert_open(f);
    /* One that did not sign the server's certificate. */
    tls_fixture_write(&f->leaf, f->ca_path, false);
    assert_refreshed(f, "1 the TLS certificates changed");
    tls_fixture_say(f, "still", 5);
    tls_fixture_run(f);
    assert_bytes(&f->heard, "still", 5);
    tls_fixture_connect(f, "redis.example");
    assert_int_equal(f->progress, CONN_FAILED);
    unlink(f->ca_path);
    assert_refreshed(f, "No such file or directory");
    tls_fixture_write(&f->ca, f->ca_path, false);
    assert_refreshed(f, "1 the TLS certificates changed");
    tls_fixture_connect(f, "redis.example");
    assert_open(f);
}

/* Another client's certificates: these, in place of those of the fixture. */
static void read_instead(struct tls_fixture *f, const struct tls_config *config)
{
    char why[TLS_TEXT_SIZE];

    tls_fixture_hang_up(f);
    tls_free(f->tls);
    if (tls_new(&f->tls, &f->system, config, why, sizeof(why)) != 0) fail_msg("%s", why);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_connects(struct tls_fixture *f)
{
    tls_fixture_connect(f, "redis.example");
    assert_open(f);
}

TLS_TEST(a_folder_without_a_good_certificate_leaves_the_former_in_use)
{
    struct tls_config config = tls_fixture_config(f);
    char folder[64], link[96], other[96], why[TLS_TEXT_SIZE];
    struct tls *tls = NULL;

    snprintf(folder, sizeof(folder), "%s/cas", f->folder);
    snprintf(link, sizeof(link), "%s/%08lx.0", folder, X509_subject_name_hash(f->ca.x509));
    snprintf(other, sizeof(other), "%s/01234567.89", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    config.ca = folder;
    /* At the start it is an error. */
    assert_int_equal(tls_new(&tls, &f->system, &config, why, sizeof(why)), QUORLOCK_ERR_INVAL);
    assert_contains(why, "/cas\": no certificate there: give a file of CA certificates");
    tls_fixture_write(&f->ca, link, false);
    read_instead(f, &config);

    /* Nothing was verified by it yet: what it had is in memory. */
    assert_int_equal(unlink(link), 0);
    assert_refreshed(
        f, "3 the new TLS certificates are bad, the old ones stay in use: --tls-ca (tls_ca): \"/tmp/quorlock-tls-");
    assert_refreshed(f, "");
    assert_connects(f);
    tls_fixture_write(&f->ca, link, false);
    write_text(other, "nothing\n");
    assert_refreshed(f, "no start line");
    assert_connects(f);
    /* A link to nothing is as good as none. */
    assert_int_equal(unlink(other), 0);
    assert_int_equal(symlink("nowhere", other), 0);
    assert_refreshed(f, "1 the TLS certificates changed");
    assert_connects(f);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_refreshed(f, "3 the new TLS certificates are bad, the old ones stay in use");
    assert_connects(f);
}

TLS_TEST(the_systems_certificates_that_are_gone_leave_the_former_in_use)
{
    struct tls_config config = tls_fixture_config(f);
    char why[TLS_TEXT_SIZE];
    struct tls *tls = NULL;

    config.ca = NULL;
    setenv("SSL_CERT_FILE", "/tmp/nowhere", 1);
    setenv("SSL_CERT_DIR", "/tmp/nowhere", 1);
    /* At the start a system may have none. */
    assert_int_equal(tls_new(&tls, &f->system, &config, why, sizeof(why)), 0);
    tls_free(tls);
    setenv("SSL_CERT_FILE", f->ca_path, 1);
    read_instead(f, &config);
    assert_int_equal(unlink(f->ca_path), 0);
    assert_refreshed(f, "--tls-ca (tls_ca): \"the system's\": no certificate there");
    assert_connects(f);
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
}

static int accept_any(X509_STORE_CTX *store, void *arg)
{
    (void)store;
    (void)arg;
    return 1;
}

static void write_key(EVP_PKEY *key, const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
}

static void assert_shows(struct tls_fixture *f, const X509 *wanted)
{
    assert_connects(f);
    tls_fixture_run(f);
    assert_non_null(SSL_get0_peer_certificate(f->server));
    assert_int_equal(X509_cmp(SSL_get0_peer_certificate(f->server), wanted), 0);
}

TLS_TEST(only_a_certificate_and_a_key_that_belong_together_are_taken)
{
    struct tls_config config = tls_fixture_config(f);
    char cert[64], key[64];
    /* Of the same kind, and of another: OpenSSL refuses only the one by itself. */
    EVP_PKEY *keys[] = {EVP_EC_gen("P-256"), EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")};

    snprintf(cert, sizeof(cert), "%s/cert.pem", f->folder);
    snprintf(key, sizeof(key), "%s/key.pem", f->folder);
    tls_fixture_write(&f->leaf, cert, false);
    write_key(f->leaf.key, key);
    config.cert = cert;
    config.key = key;
    read_instead(f, &config);
    SSL_CTX_set_verify(f->server_context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(f->server_context, accept_any, NULL);
    assert_shows(f, f->leaf.x509);
    for (size_t i = 0; i < LENGTH(keys); i++) {
        write_key(keys[i], key);
        assert_refreshed(f, "3 the new TLS certificates are bad, the old ones stay in use: --tls-key (tls_key)");
        assert_shows(f, f->leaf.x509);
        EVP_PKEY_free(keys[i]);
    }
    /* Its certificate comes behind it. */
    write_key(f->ca.key, key);
    assert_refreshed(f, "key values mismatch");
    assert_shows(f, f->leaf.x509);
    tls_fixture_write(&f->ca, cert, false);
    assert_refreshed(f, "1 the TLS certificates changed");
    assert_shows(f, f->ca.x509);
    assert_int_equal(unlink(cert), 0);
    assert_int_equal(unlink(key), 0);
}

/* What could not be read for want of a descriptor is read by the next connection. */
TLS_TEST(new_certificates_are_read_until_that_works)
{
    struct rlimit before, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    tls_fixture_write(&f->ca, f->ca_path, false);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_refreshed(f, "Too many open files");
    assert_refreshed(f, "");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_refreshed(f, "1 the TLS certificates changed");
}

/* ---- what ends it, and what is wanted ---- */

static ssize_t refuse_receive(struct system *system, int fd, void *ret, size_t size)
{
    (void)system;
    (void)fd;
    (void)ret;
    (void)size;
    errno = ECONNRESET;
    return -1;
}

static ssize_t refuse_send(struct system *system, int fd, const void *bytes, size_t size)
{
    (void)system;
    (void)fd;
    (void)bytes;
    (void)size;
    errno = EPIPE;
    return -1;
}

TLS_TEST(the_reason_of_the_socket_comes_before_that_of_openssl)
{
    tls_fixture_begin(f, "redis.example");
    f->ops.recv = refuse_receive;
    bytes_append(&f->down, "x", 1);
    tls_fixture_run(f);
    assert_refused(f, FAULT_UNREACHABLE,
                   "TLS: Connection reset by peer during the handshake: has the server TLS on this port");
}

TLS_TEST(a_write_that_fails_is_told)
{
    tls_fixture_connect(f, "redis.example");
    assert_open(f);
    f->ops.send = refuse_send;
    tls_fixture_say(f, "x", 1);
    tls_fixture_run(f);
    assert_true(f->ended);
    assert_string_equal(conn_why(&f->conn), "Broken pipe");
    assert_int_equal(f->conn.fault, FAULT_UNREACHABLE);
}

TLS_TEST(a_server_that_wants_another_certificate_is_told)
{
    struct tls_config config = tls_fixture_config(f);
    char cert[64];

    snprintf(cert, sizeof(cert), "%s/cert.pem", f->folder);
    tls_fixture_write(&f->leaf, cert, true);
    SSL_CTX_set_verify(f->server_context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    for (int has = 0; has < 2; has++) {
        config.cert = has == 1 ? cert : NULL;
        read_instead(f, &config);
        for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
            SSL_CTX_set_max_proto_version(f->server_context, version);
            tls_fixture_connect(f, "redis.example");
            assert_true(f->ended);
            assert_int_equal(f->conn.fault, FAULT_AUTH);
            assert_contains(conn_why(&f->conn),
                            has == 1 ? ": it does not accept our certificate: give one that its CA signed by --tls-cert"
                                     : ": it asks for a certificate: give ours by --tls-cert and --tls-key");
        }
    }
    assert_int_equal(unlink(cert), 0);
}

TLS_TEST(a_file_that_cannot_be_used_is_named)
{
    struct tls_config config = tls_fixture_config(f);
    char why[TLS_TEXT_SIZE], key[64];
    struct tls *tls = NULL;
    FILE *file;

    config.cert = "/nowhere/cert.pem";
    assert_int_equal(tls_new(&tls, &f->system, &config, why, sizeof(why)), QUORLOCK_ERR_INVAL);
    assert_contains(why, "--tls-cert (tls_cert): \"/nowhere/cert.pem\": No such file or directory: give a file with a");
    snprintf(key, sizeof(key), "%s/key.pem", f->folder);
    config.cert = f->ca_path;
    config.key = key;
    file = fopen(key, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, f->ca.key, EVP_aes_128_cbc(), (unsigned char *)"pw", 2, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(tls_new(&tls, &f->system, &config, why, sizeof(why)), QUORLOCK_ERR_INVAL);
    assert_contains(why, "--tls-key (tls_key): \"");
    assert_contains(why, "/key.pem\": it needs a passphrase: give a file with the key of the certificate in PEM");
    assert_int_equal(unlink(key), 0);
}

/* ---- a server that says nothing ---- */

static struct tls *connect_in_silence(struct node_fixture *f, uint32_t connect_ms)
{
    static const struct fake_step silent[] = {END};
    const struct tls_config config = {.ca = NULL};
    char why[TLS_TEXT_SIZE];
    struct tls *tls = NULL;

    node_fixture_open(f);
    assert_int_equal(tls_new(&tls, &f->system, &config, why, sizeof(why)), 0);
    f->config.link.tls = tls;
    f->config.link.connect_ms = connect_ms;
    node_fixture_uri(f, "rediss://127.0.0.1", "");
    fake_play(f->server, silent);
    assert_non_null(node_fixture_new_node(f));
    return tls;
}

static void end_silence(struct node_fixture *f, struct tls *tls)
{
    node_free(f->node);
    f->node = NULL;
    tls_free(tls);
}

NODE_TEST(a_server_that_does_not_answer_the_tls_handshake_is_told)
{
    struct tls *tls = connect_in_silence(f, 30);

    run_until(f, "down unreachable");
    assert_contains(f->why, "TLS: no answer to the handshake within 30 ms (connect_timeout_ms, --connect-timeout): "
                            "frozen, or no TLS on this port: then write redis://");
    end_silence(f, tls);
    tls = connect_in_silence(f, 60000);
    for (int i = 0; i < 10000 && strcmp(node_why(f->node), "connecting") == 0; i++) run_on(f, 1);
    assert_string_equal(node_why(f->node), "connecting: no answer to the TLS handshake yet");
    end_silence(f, tls);
}

TLS_TEST(memory_may_fail_at_any_point)
{
    struct tls_config config = tls_fixture_config(f);
    struct link_config link = {.uri = &f->uri};
    struct dial dial;
    struct tls *tls = NULL;
    char why[TLS_TEXT_SIZE];
    int status = QUORLOCK_ERR_NOMEM;
    long n = 0;

    config.name = "redis.example";
    for (; status != 0; n++) {
        f->counted.until_failure = n;
        status = tls_new(&tls, &f->system, &config, why, sizeof(why));
        if (status != 0) assert_int_equal(status, QUORLOCK_ERR_NOMEM);
    }
    assert_true(n > 3);
    f->counted.until_failure = 0;
    tls_fixture_hang_up(f);
    assert_int_equal(uri_parse(&f->uri, &memory, "rediss://127.0.0.1", why, sizeof(why)), 0);
    assert_null(tls_open(tls, &f->conn, &f->uri));
    link.tls = tls;
    dial_init(&dial, &f->conn, &link, NULL, NULL);
    f->counted.until_failure = 0;
    assert_int_equal(dial_begin(&dial), DIAL_FAILED);
    assert_string_equal(dial.why, "connect: Cannot allocate memory");
    f->counted.until_failure = -1;
    tls_free(tls);
}
