/* SPDX-License-Identifier: BSD-3-Clause */
/* rare.h - states that must be reached */
#pragma once

#include "world.h"

void rare_given_back(struct actor *);
void rare_released(struct world *, uint32_t client);
void rare_abandoned(struct world *, uint32_t keys); /* its holder is gone, and no notice comes */
void rare_granted(struct actor *);
void rare_refused(struct actor *);
void rare_quarantined(struct site *); /* its guard says so now */
void rare_executed(struct site *, struct session *);
void rare_closed(struct process *, bool owed);
