/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

struct event_base;

/* own_base_new - make an event_base of our own, for one thread at a time. NULL: out of memory or of descriptors. */
struct event_base *own_base_new(void);
