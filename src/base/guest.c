/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/guest.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/resource.h>

#define IDLE  100 /* more than any nice value */
#define LOOKS 1024

/* Of this thread, which may change it: so it is looked at again from time to time. */
static _Thread_local struct {
    unsigned looks_left;
    int level;
} known;

int guest_level(void)
{
    struct sched_param param;
    int policy = SCHED_OTHER;

    if (known.looks_left == 0) {
        pthread_getschedparam(pthread_self(), &policy, &param);
        known.level = policy == SCHED_IDLE ? IDLE : getpriority(PRIO_PROCESS, 0);
        known.looks_left = LOOKS;
    }
    known.looks_left--;
    return known.level;
}

void guest_begin(struct guest *guest)
{
    sigset_t all;

    sigfillset(&all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guest->cancel);
    pthread_sigmask(SIG_SETMASK, &all, &guest->signals);
}

void guest_end(const struct guest *guest)
{
    pthread_sigmask(SIG_SETMASK, &guest->signals, NULL);
    pthread_setcancelstate(guest->cancel, NULL);
}
