/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/uri.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define URI_LENGTH_MAX      4096
#define URI_HOST_LENGTH_MAX 253
#define URI_LABEL_MAX       63
#define URI_PORT_DEFAULT    6379
#define URI_DB_MAX          1000000
#define URI_SHOWN_MAX       160
#define URI_SCHEME_MAX      16
#define URI_REVEALING       3 /* if a text ends in this many first characters of a password, it is not shown */
#define URI_FORMS           "write redis://[user[:password]@]host[:port][/db], rediss:// for TLS, unix:///path or host:port"

/* The state of parsing one address. */
struct uri_reader {
    const struct alloc *alloc;
    const char *text;
    const char *scheme; /* as written, "redis://"; "": none */
    int n_scheme;
    char *error;
    size_t error_size;
    char shown[URI_SHOWN_MAX]; /* the part of host or path that an error may quote; "": none is known yet */
    struct uri uri;
};

static bool is_name_byte(unsigned char byte)
{
    return byte < 0x80 && (isalnum(byte) != 0 || byte == '-' || byte == '_');
}

/* A host with other characters than these may contain part of a password. */
static bool may_be_shown(const char *text, size_t length, bool brackets)
{
    for (size_t i = 0; i < length; i++) {
        if (!is_name_byte((unsigned char)text[i]) && text[i] != '.' && (!brackets || strchr(":%", text[i]) == NULL))
            return false;
    }
    return length > 0;
}

static void show_host(struct uri_reader *reader, const char *text, bool brackets)
{
    size_t length = strlen(text);

    if (may_be_shown(text, length, brackets))
        snprintf(reader->shown, sizeof(reader->shown), brackets ? "[%.150s]" : "%.150s", text);
}

static void show_path(struct uri_reader *reader, const char *path)
{
    size_t n = 0;

    for (; path[n] != '\0' && n + 1 < sizeof(reader->shown); n++)
        reader->shown[n] = isprint((unsigned char)path[n]) != 0 ? path[n] : '?';
    reader->shown[n] = '\0';
}

/* Report an error. Only scheme and host are quoted: any other part may be the password. */
__attribute__((format(printf, 2, 3))) static int invalid(struct uri_reader *reader, const char *format, ...)
{
    const char *quote = reader->n_scheme != 0 || reader->shown[0] != '\0' ? "\"" : "";
    char reason[256];
    va_list args;

    if (reader->error == NULL || reader->error_size == 0) return QUORLOCK_ERR_INVAL;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    snprintf(reader->error, reader->error_size, "address%s%s%.*s%s%s: %s", *quote != '\0' ? " " : "", quote,
             reader->n_scheme, reader->scheme, reader->shown, quote, reason);
    return QUORLOCK_ERR_INVAL;
}

static int nomem(struct uri_reader *reader)
{
    (void)invalid(reader, "out of memory");
    return QUORLOCK_ERR_NOMEM;
}

static int hex(char digit)
{
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}

/* Copy with %XX decoded. %00 is refused, because the values are C strings. */
static int decode(struct uri_reader *reader, char **ret, const char *what, const char *begin, const char *end)
{
    char *copy = alloc_text(reader->alloc, begin, (size_t)(end - begin));
    size_t n = 0;

    if (copy == NULL) return nomem(reader);
    for (const char *p = begin; p < end; p++) {
        int high = end - p > 2 ? hex(p[1]) : -1;
        int low = high >= 0 ? hex(p[2]) : -1;

        if (*p != '%') {
            copy[n++] = *p;
            continue;
        }
        if (low < 0 || (high == 0 && low == 0)) {
            explicit_bzero(copy, (size_t)(end - begin));
            alloc_free(reader->alloc, copy);
            return invalid(reader, "in the %s, %% must be followed by two hex digits, not 00", what);
        }
        copy[n++] = (char)(high * 16 + low);
        p += 2;
    }
    copy[n] = '\0';
    *ret = copy;
    return QUORLOCK_OK;
}

/* user, user:password or :password */
static int read_credentials(struct uri_reader *reader, const char *begin, const char *end)
{
    const char *colon = memchr(begin, ':', (size_t)(end - begin));
    const char *user_end = colon != NULL ? colon : end;
    int status = QUORLOCK_OK;

    if (user_end > begin) status = decode(reader, &reader->uri.user, "user", begin, user_end);
    if (status == 0 && colon != NULL && colon + 1 < end)
        status = decode(reader, &reader->uri.password, "password", colon + 1, end);
    return status;
}

/* Parse digits, without sign or space. False: there are none, or the number is above max. */
static bool read_number(const char *begin, const char *end, uint32_t max, uint32_t *ret)
{
    uint64_t number = 0;

    if (begin == end) return false;
    for (const char *p = begin; p < end; p++) {
        if (*p < '0' || *p > '9') return false;
        number = number * 10 + (uint64_t)(*p - '0');
        if (number > max) return false;
    }
    *ret = (uint32_t)number;
    return true;
}

static int read_port(struct uri_reader *reader, const char *begin, const char *end)
{
    uint32_t port = 0;

    if (!read_number(begin, end, UINT16_MAX, &port) || port == 0)
        return invalid(reader, "the port must be a number from 1 to 65535; a password must be followed by @host");
    reader->uri.port = (uint16_t)port;
    return QUORLOCK_OK;
}

static int read_db(struct uri_reader *reader, const char *begin, const char *end)
{
    if (!read_number(begin, end, URI_DB_MAX, &reader->uri.db))
        return invalid(reader, "the database must be a number from 0 to %d", URI_DB_MAX);
    return QUORLOCK_OK;
}

/* Write a numeric address in its one canonical form. An IPv4-mapped IPv6 address becomes the IPv4 address. */
static bool read_numeric(struct uri_reader *reader, const char *text, bool brackets, char *ret, size_t size)
{
    struct in6_addr address; /* or an IPv4 address */
    const unsigned char *bytes = (const unsigned char *)&address;
    int family = brackets ? AF_INET6 : AF_INET;

    if (inet_pton(family, text, &address) != 1) return false;
    reader->uri.kind = URI_NUMERIC;
    if (brackets && IN6_IS_ADDR_V4MAPPED(&address) != 0) {
        family = AF_INET;
        bytes += 12;
    }
    return inet_ntop(family, bytes, ret, (socklen_t)size) != NULL;
}

/* Read the interface behind a link-local address. RFC 6874 writes the % in front of it as %25. */
static int read_zone(struct uri_reader *reader, const char *percent, const char *end, char *address, size_t size)
{
    const char *zone = percent + 1;
    struct in6_addr parsed;
    bool is_local = inet_pton(AF_INET6, address, &parsed) == 1 && IN6_IS_ADDR_LINKLOCAL(&parsed) != 0;
    size_t used = strlen(address);

    if (is_local && percent == end)
        return invalid(reader, "a link-local address needs its interface behind it: [fe80::1%%eth0]");
    if (percent == end) return QUORLOCK_OK;
    if (!is_local) return invalid(reader, "a zone (%%...) is only allowed behind a link-local address, fe80::...");
    if (end - zone > 2 && strncmp(zone, "25", 2) == 0) zone += 2;
    for (const char *at = zone; at < end; at++)
        if (!is_name_byte((unsigned char)*at) && *at != '.') zone = end;
    if (zone == end || end - zone >= IF_NAMESIZE)
        return invalid(reader, "the %% must be followed by the name of an interface: [fe80::1%%eth0]");
    reader->uri.kind = URI_NAME;
    snprintf(address + used, size - used, "%%%.*s", (int)(end - zone), zone);
    return QUORLOCK_OK;
}

/* Whether it is labels of letters, digits, hyphen and underscore. A name that ends in a number was meant as an address.
 */
static bool is_name(const char *text, size_t length)
{
    size_t label = 0;
    bool digits = true;

    if (length == 0 || length > URI_HOST_LENGTH_MAX) return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];

        if (byte == '.') {
            if (label == 0) return false;
            label = 0;
            digits = true;
            continue;
        }
        if (!is_name_byte(byte)) return false;
        if (isdigit(byte) == 0) digits = false;
        if (++label > URI_LABEL_MAX) return false;
    }
    return label != 0 && !digits;
}

static int read_host(struct uri_reader *reader, const char *begin, const char *end, bool brackets)
{
    char text[URI_HOST_LENGTH_MAX + 1], canonical[URI_HOST_LENGTH_MAX + 1];
    const char *percent = memchr(begin, '%', (size_t)(end - begin)), *host_end = end;
    size_t length;
    int status = QUORLOCK_OK;

    if (brackets && percent != NULL) host_end = percent;
    length = (size_t)(host_end - begin);
    if (length == 0) return invalid(reader, "there is no host; " URI_FORMS);
    /* A dot at the end only means that the name is complete. */
    if (!brackets && length > 1 && begin[length - 1] == '.') length--;
    if (length > URI_HOST_LENGTH_MAX) return invalid(reader, "the host is too long");
    for (size_t i = 0; i < length; i++) text[i] = (char)tolower((unsigned char)begin[i]);
    text[length] = '\0';
    show_host(reader, text, brackets);
    if (!read_numeric(reader, text, brackets, canonical, sizeof(canonical))) {
        if (brackets) return invalid(reader, "the brackets hold no IPv6 address");
        if (!is_name(text, length)) return invalid(reader, "the host is neither an address nor a name");
        reader->uri.kind = URI_NAME;
        memcpy(canonical, text, length + 1);
    }
    if (brackets) status = read_zone(reader, host_end, end, canonical, sizeof(canonical));
    if (status != 0) return status;
    reader->uri.host = alloc_text(reader->alloc, canonical, strlen(canonical));
    return reader->uri.host != NULL ? QUORLOCK_OK : nomem(reader);
}

/* host, host:port, [v6], [v6]:port */
static int read_host_port(struct uri_reader *reader, const char *begin, const char *end)
{
    bool brackets = begin < end && *begin == '[';
    const char *host_end, *rest;
    int status;

    if (brackets) {
        host_end = memchr(begin, ']', (size_t)(end - begin));
        if (host_end == NULL) return invalid(reader, "the bracket of the IPv6 address is not closed");
        begin++;
        rest = host_end + 1;
        if (rest < end && *rest != ':') return invalid(reader, "only :port may follow the bracket");
    } else {
        const char *colon = memchr(begin, ':', (size_t)(end - begin));
        host_end = rest = colon != NULL ? colon : end;
        if (colon != NULL && memchr(colon + 1, ':', (size_t)(end - colon - 1)) != NULL)
            return invalid(reader, "more than one colon; write an IPv6 address in brackets, [::1]:6379");
    }
    reader->uri.port = URI_PORT_DEFAULT;
    status = read_host(reader, begin, host_end, brackets);
    if (status == 0 && rest < end) status = read_port(reader, rest + 1, end);
    return status;
}

/* The host is read first, so that an error in another part can quote it. */
static int read_redis(struct uri_reader *reader, const char *begin)
{
    const char *at = strrchr(begin, '@');
    const char *place = at != NULL ? at + 1 : begin;
    const char *end = place + strcspn(place, "/?#");
    int status = read_host_port(reader, place, end);

    if (status != 0) return status;
    if (strpbrk(end, "?#") != NULL) return invalid(reader, "? and # are not allowed here; " URI_FORMS);
    if (*end != '\0' && end[1] != '\0') status = read_db(reader, end + 1, end + strlen(end));
    if (status != 0 || at == NULL) return status;
    if (memchr(begin, '/', (size_t)(at - begin)) != NULL)
        return invalid(reader, "write a / in user or password as %%2F, and @ as %%40");
    return read_credentials(reader, begin, at);
}

static int read_bare(struct uri_reader *reader, const char *text)
{
    const char *end = text + strcspn(text, "/?#");
    int status;

    if (strchr(text, '@') != NULL)
        return invalid(
            reader, "an @ is only allowed in an address that begins with redis://, rediss:// or unix://; " URI_FORMS);
    status = read_host_port(reader, text, end);
    if (status == 0 && *end != '\0') status = invalid(reader, "not host:port: there is more behind it; " URI_FORMS);
    return status;
}

static int read_path(struct uri_reader *reader, const char *begin, const char *end)
{
    size_t most = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    int status = decode(reader, &reader->uri.host, "path", begin, end);

    if (status != 0) return status;
    reader->uri.kind = URI_UNIX;
    show_path(reader, reader->uri.host);
    if (strlen(reader->uri.host) < 2) return invalid(reader, "there is no path");
    if (strlen(reader->uri.host) > most)
        return invalid(reader, "the path of a unix socket may have at most %zu bytes", most);
    return QUORLOCK_OK;
}

static int read_unix(struct uri_reader *reader, const char *begin)
{
    const char *slash = strchr(begin, '/'), *query;
    int status;

    if (slash == NULL || (slash > begin && slash[-1] != '@'))
        return invalid(reader, "the path must be absolute: unix:///run/redis.sock");
    query = slash + strcspn(slash, "?");
    status = read_path(reader, slash, query);
    if (status == 0 && *query != '\0' && strncmp(query, "?db=", 4) != 0)
        status = invalid(reader, "only ?db=N may follow the path");
    if (status == 0 && *query != '\0') status = read_db(reader, query + 4, query + strlen(query));
    if (status == 0 && slash > begin) status = read_credentials(reader, begin, slash - 1);
    return status;
}

static int make_name(struct uri_reader *reader)
{
    struct uri *uri = &reader->uri;
    const char *zone = uri->kind == URI_NAME ? strchr(uri->host, '%') : NULL;
    char name[URI_HOST_LENGTH_MAX + 64];
    int n;

    if (uri->kind == URI_UNIX)
        n = snprintf(name, sizeof(name), "unix://%s", uri->host);
    else if (zone != NULL)
        /* A zone that begins with 25 is written behind %25, or its 25 would be taken for a part of that. */
        n = snprintf(name, sizeof(name), "%s[%.*s%s%s]:%u", uri->tls ? "rediss://" : "", (int)(zone - uri->host),
                     uri->host, strncmp(zone, "%25", 3) == 0 ? "%25" : "%", zone + 1, (unsigned)uri->port);
    else
        n = snprintf(name, sizeof(name), strchr(uri->host, ':') != NULL ? "%s[%s]:%u" : "%s%s:%u",
                     uri->tls ? "rediss://" : "", uri->host, (unsigned)uri->port);
    if (uri->db != 0)
        n += snprintf(name + n, sizeof(name) - (size_t)n, "%s%u", uri->kind == URI_UNIX ? "?db=" : "/",
                      (unsigned)uri->db);
    for (int i = 0; i < n; i++)
        if (isprint((unsigned char)name[i]) == 0) name[i] = '?';
    uri->name = alloc_text(reader->alloc, name, (size_t)n);
    return uri->name != NULL ? QUORLOCK_OK : nomem(reader);
}

/* Find "word://" at the beginning; elsewhere it may be part of a password. */
static void find_scheme(struct uri_reader *reader)
{
    size_t n = 0;

    while (isalnum((unsigned char)reader->text[n]) != 0 ||
           (n != 0 && strchr("+-.", reader->text[n]) != NULL && reader->text[n] != '\0'))
        n++;
    reader->scheme = reader->text;
    if (n != 0 && n < URI_SCHEME_MAX && strncmp(reader->text + n, "://", 3) == 0) reader->n_scheme = (int)n + 3;
}

/* Whether the address has one of these two schemes. None of them is the beginning of another. */
static bool has_scheme(const struct uri_reader *reader, const char *scheme, const char *other)
{
    size_t length = (size_t)reader->n_scheme;

    return strncasecmp(reader->scheme, scheme, length) == 0 || strncasecmp(reader->scheme, other, length) == 0;
}

static int read_address(struct uri_reader *reader)
{
    const char *text = reader->text;

    if (*text == '\0') return invalid(reader, "it is empty; " URI_FORMS);
    if (strlen(text) > URI_LENGTH_MAX) return invalid(reader, "it is longer than %d bytes", URI_LENGTH_MAX);
    find_scheme(reader);
    if (reader->n_scheme == 0) return read_bare(reader, text);
    reader->uri.tls = has_scheme(reader, "rediss://", "valkeys://");
    if (reader->uri.tls || has_scheme(reader, "redis://", "valkey://"))
        return read_redis(reader, text + reader->n_scheme);
    if (has_scheme(reader, "unix://", "")) return read_unix(reader, text + reader->n_scheme);
    return invalid(reader, "unknown scheme; " URI_FORMS);
}

int uri_parse(struct uri *ret, const struct alloc *alloc, const char *text, char *error, size_t error_size)
{
    struct uri_reader reader = {
        .alloc = alloc, .text = text != NULL ? text : "", .scheme = "", .error = error, .error_size = error_size};
    int status = read_address(&reader);

    if (status == 0) status = make_name(&reader);
    reader.uri.has_login = reader.uri.user != NULL || reader.uri.password != NULL;
    if (status != 0)
        uri_clear(&reader.uri, alloc);
    else
        *ret = reader.uri;
    return status;
}

static int copy_known(char **ret, const struct alloc *alloc, const char *text)
{
    *ret = NULL;
    if (text == NULL || *text == '\0') return QUORLOCK_OK;
    *ret = alloc_text(alloc, text, strlen(text));
    return *ret != NULL ? QUORLOCK_OK : QUORLOCK_ERR_NOMEM;
}

static void forget_login(struct uri *uri, const struct alloc *alloc)
{
    if (uri->password != NULL) explicit_bzero(uri->password, strlen(uri->password));
    alloc_free(alloc, uri->user);
    alloc_free(alloc, uri->password);
    uri->user = uri->password = NULL;
}

static bool same_known(const char *known, const char *text)
{
    return strcmp(known != NULL ? known : "", text != NULL ? text : "") == 0;
}

bool uri_logs_in_with(const struct uri *uri, const char *user, const char *password)
{
    return same_known(uri->user, user) && same_known(uri->password, password);
}

int uri_log_in(struct uri *uri, const struct alloc *alloc, const char *user, const char *password)
{
    char *new_user, *new_password;
    int status;

    if (uri->has_login) return QUORLOCK_OK;
    status = copy_known(&new_user, alloc, user);
    if (status == 0) status = copy_known(&new_password, alloc, password);
    if (status != 0) {
        alloc_free(alloc, new_user);
        return status;
    }
    forget_login(uri, alloc);
    uri->user = new_user;
    uri->password = new_password;
    return QUORLOCK_OK;
}

void uri_clear(struct uri *uri, const struct alloc *alloc)
{
    forget_login(uri, alloc);
    alloc_free(alloc, uri->host);
    alloc_free(alloc, uri->name);
    memset(uri, 0, sizeof(*uri));
}

bool uri_same(const struct uri *one, const struct uri *other)
{
    if ((one->kind == URI_UNIX) != (other->kind == URI_UNIX)) return false;
    if (strcmp(one->host, other->host) != 0) return false;
    return one->kind == URI_UNIX || one->port == other->port;
}

bool uri_reveals_password(const struct uri *uri, const char *text, size_t length)
{
    size_t n_password = uri->password != NULL ? strlen(uri->password) : 0;

    if (n_password == 0) return false;
    for (size_t i = 0; i < length; i++) {
        size_t n = length - i < n_password ? length - i : n_password;
        bool enough = n == n_password || n >= URI_REVEALING;

        if (enough && memcmp(text + i, uri->password, n) == 0) return true;
    }
    return false;
}
