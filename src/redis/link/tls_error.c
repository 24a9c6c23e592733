/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/tls_error.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "redis/wire/errors.h"

#define NAME_SHOWN  64
#define NAMES_SHOWN 128
#define DETAIL_SIZE 320

#define REMEDY_CERTIFICATE ": it asks for a certificate: give ours by --tls-cert and --tls-key (tls_cert, tls_key)"
#define REMEDY_OTHER_CERTIFICATE                                                                                       \
    ": it does not accept our certificate: give one that its CA signed by --tls-cert and --tls-key (tls_cert, "        \
    "tls_key)"
#define REMEDY_NAME "write one of these names into the address, or give --tls-name (tls_name)"
#define REMEDY_CA   "give the CA that signed it by --tls-ca (tls_ca); the server must send the certificates in between"

static const char *tls_error_reason_of(unsigned long code)
{
    const char *reason = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);

    return reason != NULL ? reason : "an error without a name";
}

const char *tls_error_reason(void)
{
    return tls_error_reason_of(ERR_peek_error());
}

/* ---- certificates ---- */

static void tls_error_add_name(char *ret, size_t size, const char *kind, const char *name, size_t length)
{
    char shown[NAME_SHOWN];
    size_t used = strlen(ret);

    error_printable(shown, sizeof(shown), name, length);
    snprintf(ret + used, size - used, "%s%s%s", used > 0 ? ", " : "", kind, shown);
}

static void add_alternative(char *ret, size_t size, const GENERAL_NAME *name)
{
    char address[INET6_ADDRSTRLEN];
    const ASN1_STRING *text = name->type == GEN_IPADD ? name->d.iPAddress : name->d.dNSName;
    int length;

    if (name->type != GEN_DNS && name->type != GEN_IPADD) return;
    length = ASN1_STRING_length(text);
    if (name->type == GEN_DNS)
        tls_error_add_name(ret, size, "", (const char *)ASN1_STRING_get0_data(text), (size_t)length);
    else if (inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(text), address, sizeof(address)) != NULL)
        tls_error_add_name(ret, size, "", address, strlen(address));
}

/* List the names of the certificate; those of the subject only if there are no others, as OpenSSL does. */
static void list_names(const X509 *certificate, char *ret, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    char common[NAME_SHOWN];

    ret[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) add_alternative(ret, size, sk_GENERAL_NAME_value(names, i));
    GENERAL_NAMES_free(names);
    if (ret[0] == '\0' &&
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, common, sizeof(common)) > 0)
        tls_error_add_name(ret, size, "", common, strlen(common));
    if (ret[0] == '\0') snprintf(ret, size, "no name");
}

static void write_time(const ASN1_TIME *time, char *ret, size_t size)
{
    struct tm when;

    ret[0] = '\0';
    if (ASN1_TIME_to_tm(time, &when) == 1)
        snprintf(ret, size, "%04d-%02d-%02d %02d:%02d:%02d UTC", when.tm_year + 1900, when.tm_mon + 1, when.tm_mday,
                 when.tm_hour, when.tm_min, when.tm_sec);
}

/* Write what is wrong in that certificate, and what to do. */
static void describe(int code, const X509 *certificate, const char *name, char *ret, size_t size)
{
    char detail[NAMES_SHOWN] = "";

    switch (code) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        list_names(certificate, detail, sizeof(detail));
        snprintf(ret, size, ": it is for %s, not for %.64s: " REMEDY_NAME, detail, name);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        write_time(X509_get0_notAfter(certificate), detail, sizeof(detail));
        snprintf(ret, size, " (%s): give the server a new one", detail);
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        write_time(X509_get0_notBefore(certificate), detail, sizeof(detail));
        snprintf(ret, size, ": it is from %s on: is the clock of this machine right?", detail);
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: snprintf(ret, size, ": " REMEDY_CA); break;
    default: ret[0] = '\0'; break;
    }
}

void tls_error_certificate(X509_STORE_CTX *store, const char *name, char *ret, size_t size)
{
    int code = X509_STORE_CTX_get_error(store);
    char more[DETAIL_SIZE];

    describe(code, X509_STORE_CTX_get_current_cert(store), name, more, sizeof(more));
    snprintf(ret, size, "TLS: the server's certificate%s is refused: %s%s",
             X509_STORE_CTX_get_error_depth(store) > 0 ? " chain" : "", X509_verify_cert_error_string(code), more);
}

/* ---- connections ---- */

/* Whether a server sends this alert because it refuses our certificate, or wants one. */
static bool wants_certificate(int alert)
{
    switch (alert) {
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED: return true;
    default: return false;
    }
}

enum fault tls_error_failure(bool has_certificate, char *ret, size_t size)
{
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    int alert = reason > SSL_AD_REASON_OFFSET ? reason - SSL_AD_REASON_OFFSET : 0;
    const char *remedy = "";
    enum fault fault = FAULT_PROTO;

    if (reason == SSL_R_WRONG_VERSION_NUMBER) {
        remedy = ": the server does not speak TLS on this port: write redis://, or give its tls-port";
    } else if (reason == SSL_R_UNSUPPORTED_PROTOCOL || alert == SSL_AD_PROTOCOL_VERSION) {
        remedy = ": let the server speak TLS 1.2 or 1.3 (its tls-protocols)";
    } else if (wants_certificate(alert)) {
        fault = FAULT_AUTH;
        remedy = has_certificate ? REMEDY_OTHER_CERTIFICATE : REMEDY_CERTIFICATE;
    }
    snprintf(ret, size, "TLS: %s%s", tls_error_reason_of(code), remedy);
    return fault;
}
