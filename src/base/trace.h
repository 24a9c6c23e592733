/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - static tracepoints for perf, bpftrace and SystemTap; quorlock(7) lists them
 *
 * One is a no-op in the code, and a note in the file about where it is and where its arguments are. Where the system
 * had no sys/sdt.h at the build it is nothing at all.
 */
#pragma once

#ifdef QUORLOCK_TRACEPOINTS
#include <sys/sdt.h>
#ifdef __clang__
/* Macros of that header have it. */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#define TRACE1(name, a)          DTRACE_PROBE1(quorlock, name, a)
#define TRACE2(name, a, b)       DTRACE_PROBE2(quorlock, name, a, b)
#define TRACE3(name, a, b, c)    DTRACE_PROBE3(quorlock, name, a, b, c)
#define TRACE4(name, a, b, c, d) DTRACE_PROBE4(quorlock, name, a, b, c, d)
#else
#define TRACE1(name, a)          ((void)(a))
#define TRACE2(name, a, b)       ((void)(a), (void)(b))
#define TRACE3(name, a, b, c)    ((void)(a), (void)(b), (void)(c))
#define TRACE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif
