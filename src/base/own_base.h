/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

struct event_base;

/* own_base_new - make an event_base of our own, with precise timers. NULL: out of memory or of descriptors. */
struct event_base *own_base_new(void);
