/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.h - one machine, some model servers and the network between them, for the tests of tests/integration
 *
 * There is one place at a time. Its time goes on only in place_turn() and place_sleep(). A seed decides how long each
 * message and each command takes, and so in which order things happen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct alloc_hooks;
struct session;
struct system;

#define PLACE_SERVERS_MAX 9u

/* place_begin - a new place without servers.
 * place_end - free the place, and return how many blocks and descriptors the machine had left. */
void place_begin(uint64_t seed);
size_t place_end(void);

const struct system *place_system(void);
const struct alloc_hooks *place_memory(void);

/* place_clock_us - return what the clock of the machine shows. place_wall_us - the wall clock of all.
 * place_turn - let the next thing happen, if it happens within some ms and before the clock shows until_us.
 * place_sleep - let that time pass, while the machine stands still. */
uint64_t place_clock_us(void);
uint64_t place_wall_us(void);
void place_turn(uint64_t until_us);
void place_sleep(uint64_t us);

/* place_boot - a new server, with that index.
 * place_launch - start its process again after a crash; password: NULL: none. */
void place_boot(uint32_t index, const char *password);
void place_launch(uint32_t index, bool empty, const char *password);
void place_crash(uint32_t index);
void place_freeze(uint32_t index, bool frozen);
/* place_do - run a command of the operator there, and return the reply as text. */
const char *place_do(uint32_t index, const char *const *words, size_t n_words);
/* place_listen - open a connection of the operator that stays; write() gets all that the server says there.
 * place_say - send a command there, and let the server execute it. place_deafen - close the connection. */
struct session *place_listen(uint32_t index, void (*write)(void *arg, const void *bytes, size_t size), void *arg);
void place_say(uint32_t index, struct session *, const char *bytes, size_t size);
void place_deafen(struct session *);
/* place_keys - return how many of its keys begin so. */
long long place_keys(uint32_t index, const char *prefix);
/* place_scripts, place_sets - return how many scripts, and how many SETs of clients, it has executed. */
long long place_scripts(uint32_t index);
long long place_sets(uint32_t index);
