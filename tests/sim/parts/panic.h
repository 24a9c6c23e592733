/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * panic.h - the world itself, or the library in it, did what must never happen: says so on stderr and aborts
 *
 * Such as reading a descriptor that is closed, freeing what another machine allocated, or a command that the model
 * does not know. What a caller sees or may expect is judged by the judge.
 */
#pragma once

_Noreturn void panic(const char *format, ...) __attribute__((format(printf, 1, 2)));
