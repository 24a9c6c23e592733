/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - static tracepoints for perf, bpftrace and SystemTap; quorlock(7) lists them
 *
 * A tracepoint is a no-op in the code, and an ELF note that says where it is and where its arguments are. Without
 * sys/sdt.h at build time it is nothing at all.
 */
#pragma once

#ifdef QUORLOCK_TRACEPOINTS
#include <sys/sdt.h>
#ifdef __clang__
/* The macros of sys/sdt.h need it. */
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
