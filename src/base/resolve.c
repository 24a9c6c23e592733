/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/list.h"

struct answer {
    struct addresses addresses;
    int result; /* of getaddrinfo */
    int error;  /* its errno */
};

/* A name that is being looked up. Its thread frees it. The memory is malloc's, because the allocator hooks belong to
 * the loop's thread. */
struct question {
    struct link at;      /* in `questions` */
    struct list lookups; /* that wait for the answer; empty if all were canceled */
    char name[];
};

struct lookup {
    const struct alloc *alloc;
    const struct quorlock_loop *loop;
    int fd; /* an eventfd that becomes readable when the answer has come */
    void *watch;
    uint16_t port;
    void (*done)(void *arg, const struct addresses *);
    void *arg;
    struct question *question;
    struct link at; /* in the question's list, until it is answered */
    struct answer answer;
};

/* Protects the questions and the links between them and their lookups. Nobody blocks while holding it. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct list questions;

/* ---- fork ---- */

/* A child of fork() has none of the threads. Its lookups must wait neither for their answers nor for a mutex that one
 * of them held. */
static void before_fork(void)
{
    pthread_mutex_lock(&guard);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&guard);
}

static void in_child(void)
{
    questions = (struct list){.count = 0};
    pthread_mutex_unlock(&guard);
}

static void prepare_for_fork(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- the thread ---- */

static void resolve_take(struct addresses *addresses, const struct addrinfo *list)
{
    for (; list != NULL && addresses->n < ADDRESSES_MAX; list = list->ai_next) {
        struct address *address = &addresses->at[addresses->n];

        if (list->ai_addrlen > sizeof(address->storage)) continue;
        memcpy(&address->storage, list->ai_addr, list->ai_addrlen);
        address->length = list->ai_addrlen;
        addresses->n++;
    }
}

static void resolve_complete(struct question *question, const struct answer *answer)
{
    struct lookup *lookup;

    pthread_mutex_lock(&guard);
    list_remove(&questions, &question->at);
    while ((lookup = FIRST_OF(&question->lookups, struct lookup, at)) != NULL) {
        list_remove(&question->lookups, &lookup->at);
        lookup->answer = *answer;
        (void)eventfd_write(lookup->fd, 1);
    }
    pthread_mutex_unlock(&guard);
    free(question);
}

/* glibc keeps the addresses of the name servers for each thread and frees them at the very end of the thread, when
 * LeakSanitizer no longer counts it. A program that exits at this moment would seem to leak them, so they are freed
 * here. A thread that asked no name server has a state of zeros: res_nclose() would close descriptor 0 then. */
static void forget_servers(void)
{
#ifdef __GLIBC__
    if ((_res.options & RES_INIT) != 0) res_nclose(&_res);
#endif
}

static void *resolve_ask(void *arg)
{
    static const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};
    struct question *question = arg;
    struct addrinfo *list = NULL;
    struct answer answer = {.result = getaddrinfo(question->name, NULL, &hints, &list)};

    answer.error = errno;
    if (answer.result == 0) {
        resolve_take(&answer.addresses, list);
        freeaddrinfo(list);
    }
    forget_servers();
    resolve_complete(question, &answer);
    return NULL;
}

/* The thread blocks all signals: they are for the program's own threads. Its stack has the default size, because the
 * plugins that nsswitch.conf names run on it; untouched pages cost no memory. Returns 0, or an errno. */
static int resolve_start_thread(struct question *question)
{
    sigset_t all, before;
    pthread_t thread;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, resolve_ask, question);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) pthread_detach(thread);
    return error;
}

/* ---- questions; call these with the mutex held ---- */

static struct question *resolve_find(const char *name)
{
    LIST_EACH (struct question, question, &questions, at) {
        if (strcmp(question->name, name) == 0) return question;
    }
    return NULL;
}

/* NULL: failed, with errno set. */
static struct question *resolve_begin(const char *name)
{
    size_t size = strlen(name) + 1;
    struct question *question = calloc(1, sizeof(*question) + size);
    int error;

    if (question == NULL) return NULL;
    memcpy(question->name, name, size);
    error = resolve_start_thread(question);
    if (error != 0) {
        free(question);
        errno = error;
        return NULL;
    }
    list_add(&questions, &question->at);
    return question;
}

/* False: failed, with errno set. */
static bool join(struct lookup *lookup, const char *name)
{
    pthread_mutex_lock(&guard);
    lookup->question = resolve_find(name);
    if (lookup->question == NULL) lookup->question = resolve_begin(name);
    if (lookup->question != NULL) list_add(&lookup->question->lookups, &lookup->at);
    pthread_mutex_unlock(&guard);
    return lookup->question != NULL;
}

/* ---- the loop ---- */

static bool is_answered(const struct lookup *lookup)
{
    bool answered;

    pthread_mutex_lock(&guard);
    answered = !list_has(&lookup->at);
    pthread_mutex_unlock(&guard);
    return answered;
}

static void lookup_free(struct lookup *lookup)
{
    pthread_mutex_lock(&guard);
    if (list_has(&lookup->at)) list_remove(&lookup->question->lookups, &lookup->at);
    pthread_mutex_unlock(&guard);
    if (lookup->watch != NULL) lookup->loop->watch_free(lookup->watch);
    if (lookup->fd >= 0) close(lookup->fd);
    alloc_free(lookup->alloc, lookup);
}

static const char *problem(const struct answer *answer)
{
    switch (answer->result) {
    case 0:
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY: return "there is no such host, or it has no address";
    case EAI_AGAIN: return "no name server answers, or only with an error: try again, and see /etc/resolv.conf";
    case EAI_SYSTEM: return strerror(answer->error);
    default: return gai_strerror(answer->result);
    }
}

static void set_port(struct address *address, uint16_t port)
{
    if (address->storage.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->storage)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&address->storage)->sin_port = htons(port);
}

static void resolve_on_ready(void *arg, unsigned events)
{
    struct lookup *lookup = arg;
    void (*done)(void *, const struct addresses *) = lookup->done;
    void *done_arg = lookup->arg;
    struct addresses addresses;

    (void)events;
    if (!is_answered(lookup)) return;
    addresses = lookup->answer.addresses;
    for (size_t i = 0; i < addresses.n; i++) set_port(&addresses.at[i], lookup->port);
    if (addresses.n == 0) addresses.why = problem(&lookup->answer);
    lookup_free(lookup);
    done(done_arg, &addresses);
}

struct lookup *resolve_start(struct system *system, const char *name, uint16_t port,
                             void (*done)(void *, const struct addresses *), void *arg)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct quorlock_loop *loop = &system->loop;
    struct lookup *lookup = alloc_zero(system->alloc, sizeof(*lookup));
    int error = ENOMEM;

    pthread_once(&once, prepare_for_fork);
    if (lookup == NULL) goto failed;
    *lookup = (struct lookup){.alloc = system->alloc, .loop = loop, .port = port, .done = done, .arg = arg};
    lookup->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (lookup->fd < 0) {
        error = errno;
        goto failed;
    }
    lookup->watch = loop->watch_new(loop->arg, lookup->fd, resolve_on_ready, lookup);
    if (lookup->watch == NULL || loop->watch_set(lookup->watch, WATCH_READ) != 0) goto failed;
    if (join(lookup, name)) return lookup;
    error = errno;
failed:
    if (lookup != NULL) lookup_free(lookup);
    errno = error;
    return NULL;
}

void resolve_cancel(struct lookup *lookup)
{
    lookup_free(lookup);
}
