/* SPDX-License-Identifier: BSD-3-Clause */
/* tls_error.h - describe errors of OpenSSL: its own text, the details and the remedy */
#pragma once

#include <openssl/x509_vfy.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/protocol.h"

/* tls_error_reason - return the text of the first error in OpenSSL's queue. */
const char *tls_error_reason(void);
/* tls_error_certificate - write why verifying failed; name: the expected name. */
void tls_error_certificate(X509_STORE_CTX *, const char *name, char *ret, size_t size);
/* tls_error_failure - write why the connection failed, from the error queue, and return its fault. has_certificate: we
 * showed one. */
enum fault tls_error_failure(bool has_certificate, char *ret, size_t size);
