/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/tls.h"

#include <stdio.h>

#ifdef QUORLOCK_TLS

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/store.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/system.h"
#include "redis/link/tls_error.h"

struct tls {
    struct system *system;
    char *ca, *cert, *key, *name; /* as in the config */
    void (*log)(int level, const char *text, void *arg);
    void *log_arg;
    BIO_METHOD *method;
    SSL_CTX *context;
    uint64_t stamp;     /* see stamp_files; of the files in use */
    uint64_t bad_stamp; /* of the files that were read last, if they are bad; 0: they are not */
    bool encrypted;     /* the key that was read needs a passphrase */
};

/* The layer of one connection. */
struct tls_layer {
    struct conn_layer layer;
    const struct alloc *alloc;
    struct conn *conn;
    char *name; /* that the server's certificate must have */
    SSL *ssl;
    bool cut; /* the socket ended or failed during this call */
};

/* ---- the socket, as OpenSSL sees it ---- */

static int bio_write(BIO *bio, const char *bytes, size_t size, size_t *ret)
{
    struct tls_layer *tls = BIO_get_data(bio);
    ssize_t n = conn_send(tls->conn, bytes, size);

    BIO_clear_retry_flags(bio);
    if (n == 0) BIO_set_retry_write(bio);
    if (n < 0) tls->cut = true;
    *ret = n > 0 ? (size_t)n : 0;
    /* From 3.2 on OpenSSL takes a 0 without the retry flag as success. */
    return n < 0 ? -1 : n > 0;
}

static int bio_read(BIO *bio, char *bytes, size_t size, size_t *ret)
{
    struct tls_layer *tls = BIO_get_data(bio);
    ssize_t n = conn_receive(tls->conn, bytes, size);

    BIO_clear_retry_flags(bio);
    if (n == 0) BIO_set_retry_read(bio);
    if (n < 0) tls->cut = true;
    *ret = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* We do not buffer, so there is nothing to flush. */
static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "quorlock");

    if (method == NULL) return NULL;
    if (BIO_meth_set_write_ex(method, bio_write) == 1 && BIO_meth_set_read_ex(method, bio_read) == 1 &&
        BIO_meth_set_ctrl(method, bio_control) == 1)
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* ---- the layer ---- */

static struct tls_layer *layer_of(struct conn_layer *layer)
{
    return CONTAINER_OF(layer, struct tls_layer, layer);
}

/* Called before each call of OpenSSL: an error that was left in the queue would be taken as one of this call. */
static void tls_prepare(struct tls_layer *tls)
{
    tls->cut = false;
    ERR_clear_error();
}

/* Return what an unsuccessful call waits for, or set why it failed. The socket's own error comes first, because OpenSSL
 * replaces it by one of its own. */
static ssize_t tls_judge(struct tls_layer *tls, unsigned *waits)
{
    struct conn *conn = tls->conn;
    int error = SSL_get_error(tls->ssl, 0);

    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        *waits = error == SSL_ERROR_WANT_READ ? WATCH_READ : WATCH_WRITE;
        return 0;
    }
    if (!tls->cut) conn->error = 0;
    if (!tls->cut && error != SSL_ERROR_ZERO_RETURN && conn->why[0] == '\0')
        conn->fault = tls_error_failure(SSL_get_certificate(tls->ssl) != NULL, conn->why, sizeof(conn->why));
    ERR_clear_error();
    return -1;
}

/* A server that closes the connection during the handshake does not tell why. */
static void describe_hang_up(struct conn *conn)
{
    snprintf(conn->why, sizeof(conn->why),
             "TLS: %s during the handshake: has the server TLS on this port, and room below its maxclients?",
             conn->error != 0 ? strerror(conn->error) : "the server closed the connection");
}

static ssize_t tls_greet(struct conn_layer *layer, unsigned *waits)
{
    struct tls_layer *tls = layer_of(layer);
    ssize_t n;

    tls_prepare(tls);
    if (SSL_do_handshake(tls->ssl) == 1) return 1;
    n = tls_judge(tls, waits);
    if (n < 0 && tls->conn->why[0] == '\0') describe_hang_up(tls->conn);
    return n;
}

static ssize_t read_some(struct conn_layer *layer, void *ret, size_t size, unsigned *waits)
{
    struct tls_layer *tls = layer_of(layer);
    size_t n = 0;

    tls_prepare(tls);
    return SSL_read_ex(tls->ssl, ret, size, &n) == 1 ? (ssize_t)n : tls_judge(tls, waits);
}

static ssize_t tls_write_some(struct conn_layer *layer, const void *bytes, size_t size, unsigned *waits)
{
    struct tls_layer *tls = layer_of(layer);
    size_t n = 0;

    tls_prepare(tls);
    return SSL_write_ex(tls->ssl, bytes, size, &n) == 1 ? (ssize_t)n : tls_judge(tls, waits);
}

/* No close_notify is sent: in a forked child it would end the parent's connection. */
static void layer_free(struct conn_layer *layer)
{
    struct tls_layer *tls = layer_of(layer);

    if (tls->ssl != NULL) SSL_free(tls->ssl);
    alloc_free(tls->alloc, tls);
}

/* OpenSSL's verdict on each certificate. A failure is described here, while the certificate is at hand. */
static int on_verified(int fine, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_layer *tls = SSL_get_app_data(ssl);

    if (fine != 1) {
        tls_error_certificate(store, tls->name, tls->conn->why, sizeof(tls->conn->why));
        tls->conn->fault = FAULT_AUTH;
    }
    return fine;
}

/* Set the name that is verified. SNI carries names only, no addresses (RFC 6066). */
static bool expect_name(SSL *ssl, char *name)
{
    struct in6_addr address;
    char text[INET6_ADDRSTRLEN];
    /* The zone of an address belongs to this machine, and is in no certificate. */
    bool fits = (size_t)snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "%"), name) < sizeof(text);

    if (fits && (inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), text) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static bool prepare_layer(struct tls_layer *layer, const struct tls *tls)
{
    BIO *bio = BIO_new(tls->method);

    if (bio == NULL) return false;
    BIO_set_data(bio, layer);
    BIO_set_init(bio, 1);
    layer->ssl = SSL_new(tls->context);
    if (layer->ssl == NULL) {
        BIO_free(bio);
        return false;
    }
    SSL_set_bio(layer->ssl, bio, bio);
    SSL_set_connect_state(layer->ssl);
    X509_VERIFY_PARAM_set_time(SSL_get0_param(layer->ssl), (time_t)(tls->system->ops->wall_us(tls->system) / 1000000u));
    return SSL_set_app_data(layer->ssl, layer) == 1 && expect_name(layer->ssl, layer->name);
}

struct conn_layer *tls_open(struct tls *tls, struct conn *conn, const struct uri *uri)
{
    struct tls_layer *layer = alloc_zero(tls->system->alloc, sizeof(*layer));

    if (layer == NULL) return NULL;
    tls_refresh(tls);
    *layer = (struct tls_layer){
        .layer = {.greet = tls_greet, .read = read_some, .write = tls_write_some, .free = layer_free},
        .alloc = tls->system->alloc,
        .conn = conn,
        .name = tls->name != NULL ? tls->name : uri->host,
    };
    if (prepare_layer(layer, tls)) return &layer->layer;
    ERR_clear_error();
    layer_free(&layer->layer);
    return NULL;
}

/* ---- certificates ---- */

/* Without this function OpenSSL would ask for the passphrase on the terminal. */
static int on_passphrase(char *ret, int size, int writing, void *arg)
{
    struct tls *tls = arg;

    (void)ret;
    (void)size;
    (void)writing;
    tls->encrypted = true;
    return 0;
}

static SSL_CTX *make_context(struct tls *tls)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    if (context == NULL) return NULL;
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, on_verified);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_passwd_cb(context, on_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(context, tls);
    return context;
}

static const char *default_path(const char *variable, const char *otherwise)
{
    const char *given = getenv(variable);

    return given != NULL ? given : otherwise;
}

/* Whether the path is a link to a certificate that openssl rehash made, such as 0a1b2c3d.0. */
static bool is_hashed(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t hash = strspn(name, "0123456789abcdef");

    return hash == 8 && name[hash] == '.' && name[hash + 1] != '\0' &&
           name[hash + 1 + strspn(name + hash + 1, "0123456789")] == '\0';
}

/* Return how many certificates of a folder OpenSSL finds, and load them unless `into` is NULL; -1: one of them is bad.
 * A link may remain after its certificate was removed. */
static int count_folder(const struct tls *tls, const char *folder, X509_LOOKUP *into)
{
    OSSL_STORE_CTX *store = OSSL_STORE_open(folder, NULL, NULL, NULL, NULL);
    OSSL_STORE_INFO *info;
    int n = 0;

    if (store == NULL) return -1;
    ERR_clear_error(); /* from ways to open it that failed */
    while (n >= 0 && (info = OSSL_STORE_load(store)) != NULL) {
        const char *path = OSSL_STORE_INFO_get0_NAME(info);

        ERR_clear_error(); /* from reading the folder, in OpenSSL 3.5 */
        if (path != NULL && is_hashed(path) && tls->system->ops->file_stamp(tls->system, path, NULL) != 0)
            n = into == NULL || X509_load_cert_file(into, path, X509_FILETYPE_PEM) > 0 ? n + 1 : -1;
        OSSL_STORE_INFO_free(info);
    }
    OSSL_STORE_close(store);
    return n;
}

/* The system's certificates are too many to load: OpenSSL loads one when it needs it. A system that has none yet may
 * get some; until then no node is trusted. */
static int count_defaults(const struct tls *tls, SSL_CTX *context)
{
    const char *folder = default_path(X509_get_default_cert_dir_env(), X509_get_default_cert_dir());
    int n;

    if (SSL_CTX_set_default_verify_paths(context) != 1) return -1;
    n = sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(context)));
    if (n > 0 || strchr(folder, ':') != NULL) return 1; /* several folders */
    n = count_folder(tls, folder, NULL);
    return n > 0 || tls->context == NULL;
}

/* Return how many there are, or -1. Certificates that are loaded stay in use, whatever becomes of file and folder. */
static int load_cas(const struct tls *tls, SSL_CTX *context)
{
    X509_LOOKUP *into;
    bool is_folder = false;

    if (tls->ca == NULL) return count_defaults(tls, context);
    into = X509_STORE_add_lookup(SSL_CTX_get_cert_store(context), X509_LOOKUP_file());
    if (into == NULL) return -1;
    (void)tls->system->ops->file_stamp(tls->system, tls->ca, &is_folder);
    if (is_folder) return count_folder(tls, tls->ca, into);
    if (X509_load_cert_file(into, tls->ca, X509_FILETYPE_PEM) > 0) return 1;
    return ERR_GET_REASON(ERR_peek_error()) == PEM_R_NO_START_LINE ? 0 : -1;
}

static bool load(struct tls *tls, SSL_CTX *context, char *error, size_t size)
{
    const char *key = tls->key != NULL ? tls->key : tls->cert;
    int n_cas = load_cas(tls, context);

    tls->encrypted = false;
    if (n_cas <= 0) {
        snprintf(error, size,
                 "--tls-ca (tls_ca): \"%s\": %s: give a file of CA certificates in PEM, or a folder of them "
                 "that openssl rehash has prepared",
                 tls->ca != NULL ? tls->ca : "the system's", n_cas == 0 ? "no certificate there" : tls_error_reason());
        return false;
    }
    ERR_clear_error();
    if (tls->cert != NULL && SSL_CTX_use_certificate_chain_file(context, tls->cert) != 1) {
        snprintf(error, size, "--tls-cert (tls_cert): \"%s\": %s: give a file with a certificate in PEM", tls->cert,
                 tls_error_reason());
    } else if (key != NULL && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
        snprintf(error, size,
                 "--tls-key (tls_key): \"%s\": %s: give a file with the key of the certificate in PEM, "
                 "without a passphrase",
                 key, tls->encrypted ? "it needs a passphrase" : tls_error_reason());
    } else if (key != NULL && SSL_CTX_check_private_key(context) != 1) {
        /* A key of the same kind was refused above. */
        snprintf(error, size,
                 "--tls-key (tls_key): \"%s\": the certificate \"%s\" is for another key: give the two that "
                 "belong together",
                 key, tls->cert);
    } else {
        return true;
    }
    return false;
}

static SSL_CTX *tls_read_files(struct tls *tls, char *error, size_t size)
{
    SSL_CTX *context;

    ERR_clear_error();
    context = make_context(tls);
    if (context == NULL) {
        snprintf(error, size, "OpenSSL: %s", tls_error_reason());
    } else if (!load(tls, context, error, size)) {
        SSL_CTX_free(context);
        context = NULL;
    }
    ERR_clear_error();
    return context;
}

static void write_log(const struct tls *tls, int level, const char *text)
{
    if (tls->log != NULL) tls->log(level, text, tls->log_arg);
}

/* Return a number that changes when one of the files changes. */
static uint64_t stamp_files(const struct tls *tls)
{
    const char *const paths[] = {
        tls->ca != NULL ? tls->ca : default_path(X509_get_default_cert_file_env(), X509_get_default_cert_file()),
        tls->ca != NULL ? NULL : default_path(X509_get_default_cert_dir_env(), X509_get_default_cert_dir()),
        tls->cert,
        tls->key,
    };
    uint64_t hash = HASH_START;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        uint64_t stamp = paths[i] != NULL ? tls->system->ops->file_stamp(tls->system, paths[i], NULL) : 0;

        hash = hash_bytes(hash, &stamp, sizeof(stamp));
    }
    return hash;
}

void tls_refresh(struct tls *tls)
{
    uint64_t stamp = stamp_files(tls); /* taken before they are read: a change meanwhile makes them be read again */
    uint64_t logged = tls->bad_stamp;
    char why[TLS_TEXT_SIZE], text[TLS_TEXT_SIZE + 64];
    SSL_CTX *context;

    tls->bad_stamp = 0;
    if (stamp == tls->stamp) return;
    context = tls_read_files(tls, why, sizeof(why));
    if (context == NULL) {
        /* The files are read again for each connection: the reading may have failed for lack of memory or descriptors.
         */
        tls->bad_stamp = stamp;
        snprintf(text, sizeof(text), "the new TLS certificates are bad, the old ones stay in use: %s", why);
        if (stamp != logged) write_log(tls, QUORLOCK_LOG_ERROR, text);
        return;
    }
    SSL_CTX_free(tls->context);
    tls->context = context;
    tls->stamp = stamp;
    write_log(tls, QUORLOCK_LOG_INFO, "the TLS certificates changed: new connections use them");
}

/* ---- life ---- */

static bool tls_copy(const struct alloc *alloc, char **ret, const char *text)
{
    if (text == NULL) return true;
    *ret = alloc_text(alloc, text, strlen(text));
    return *ret != NULL;
}

int tls_new(struct tls **ret, struct system *system, const struct tls_config *config, char *error, size_t error_size)
{
    struct tls *tls = alloc_zero(system->alloc, sizeof(*tls));
    bool copied;

    snprintf(error, error_size, "out of memory");
    if (tls == NULL) return QUORLOCK_ERR_NOMEM;
    tls->system = system;
    tls->log = config->log;
    tls->log_arg = config->arg;
    copied = tls_copy(system->alloc, &tls->ca, config->ca) && tls_copy(system->alloc, &tls->cert, config->cert) &&
             tls_copy(system->alloc, &tls->key, config->key) && tls_copy(system->alloc, &tls->name, config->name);
    if (copied) tls->method = make_method();
    if (tls->method != NULL) {
        tls->stamp = stamp_files(tls);
        tls->context = tls_read_files(tls, error, error_size);
    }
    if (tls->context == NULL) {
        int status = tls->method == NULL ? QUORLOCK_ERR_NOMEM : QUORLOCK_ERR_INVAL;

        tls_free(tls);
        return status;
    }
    *ret = tls;
    return QUORLOCK_OK;
}

void tls_free(struct tls *tls)
{
    const struct alloc *alloc;

    if (tls == NULL) return;
    alloc = tls->system->alloc;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    alloc_free(alloc, tls->ca);
    alloc_free(alloc, tls->cert);
    alloc_free(alloc, tls->key);
    alloc_free(alloc, tls->name);
    alloc_free(alloc, tls);
}

#else

int tls_new(struct tls **ret, struct system *system, const struct tls_config *config, char *error, size_t error_size)
{
    (void)ret;
    (void)system;
    (void)config;
    snprintf(error, error_size,
             "this build of quorlock has no TLS: build it with OpenSSL and -DQUORLOCK_TLS=ON, or "
             "write redis:// where the network is private");
    return QUORLOCK_ERR_UNSUPPORTED;
}

/* tls_new() makes none, so nothing below is ever called with one. */
void tls_free(struct tls *tls)
{
    (void)tls;
}

void tls_refresh(struct tls *tls)
{
    (void)tls;
}

struct conn_layer *tls_open(struct tls *tls, struct conn *conn, const struct uri *uri)
{
    (void)tls;
    (void)conn;
    (void)uri;
    return NULL;
}

#endif
