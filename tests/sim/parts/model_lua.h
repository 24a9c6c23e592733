/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_lua.h - the Lua in which scripts run
 *
 * One for all models of a thread. What a script could keep for the next one is protected: it can set no global.
 */
#pragma once

#include "model_own.h"

#define MODEL_SHA_LENGTH 40

void model_lua_open(void);
void model_lua_close(void);
/* model_lua_sha - SHA-1 in hexadecimal digits, with a NUL behind. */
void model_lua_sha(const struct word *text, char *ret);
/* model_lua_compile - false: it is no Lua, and the error was replied. */
bool model_lua_compile(const struct word *text, struct out *, int *ret_function);
/* model_lua_run - KEYS and ARGV are the words of EVAL or EVALSHA; replies what the script returns. */
void model_lua_run(struct call *, int function, const char *sha, size_t n_keys);
/* model_pool - as lua_Alloc. model_pool_free: after lua_close(). */
void *model_pool(void *arg, void *block, size_t size, size_t wanted);
void model_pool_free(void);
