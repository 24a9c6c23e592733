/* SPDX-License-Identifier: BSD-3-Clause */
/* tls_words.h - what OpenSSL found wrong, in its own words, with the details and the remedy */
#pragma once

#include <openssl/x509_vfy.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/protocol.h"

/* tls_words_reason - the first error of OpenSSL's queue. */
const char *tls_words_reason(void);
/* tls_words_certificate - why verifying failed; name: the one that was expected. */
void tls_words_certificate(X509_STORE_CTX *, const char *name, char *ret, size_t size);
/* tls_words_failure - why the connection failed, by the error queue, and what fault that is. has_certificate: we
 * showed one. */
enum fault tls_words_failure(bool has_certificate, char *ret, size_t size);
