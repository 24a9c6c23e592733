/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/guest.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#define IDLE  100 /* more than any nice value */
#define LOOKS 1024
/* A turn of the loop was seen to take 60 KiB of stack, of which 16 are what it reads. */
#define ROOM ((size_t)128 * 1024)

/* Of this thread, which may change it: so it is looked at again from time to time. */
static _Thread_local struct {
    unsigned looks_left;
    int level;
    bool has_stack;     /* the two below are known */
    uintptr_t low, top; /* of its stack */
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

static void look_at_stack(void)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;

    known.has_stack = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        known.low = (uintptr_t)low;
        known.top = (uintptr_t)low + size;
    }
    pthread_attr_destroy(&attributes);
}

bool guest_has_room(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (!known.has_stack) look_at_stack();
    return here < known.top && here >= known.low && here - known.low >= ROOM;
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
