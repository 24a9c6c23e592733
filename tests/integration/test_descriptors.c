/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_descriptors.c - a process that has no file descriptor left: the facade says so, prints nothing, and
 * never ends the process
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quorlock/sync.h>

#include "fixture.h"

#define LEASE_MS 120000u
#define FD_MAX   256

/* How a child ended. 1 is what libevent's exit would give. */
enum end { WORKED = 0, NOT_OPENED = 40, NO_QUORUM = 41, WRONG = 42 };

static enum end acquire_once(quorlock_sync_client *sync_client)
{
    struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    quorlock_sync_lock *lock = NULL;
    const char *key = "key";
    int status = quorlock_sync_lock_new(&lock, sync_client, &key, 1, &options, NULL);

    if (status == 0) status = quorlock_sync_lock_acquire(lock, &result);
    if (status == QUORLOCK_ERR_NOQUORUM) return result.text[0] != '\0' ? NO_QUORUM : WRONG;
    if (status != 0) return WRONG;
    return quorlock_sync_lock_release(lock, NULL) == 0 ? WORKED : WRONG;
}

static enum end live(void)
{
    struct quorlock_error error;
    struct quorlock_client_options options = {.size = sizeof(options),
                                              .nodes = fixture.cluster.addresses,
                                              .n_nodes = 3,
                                              .guard = QUORLOCK_GUARD_OFF,
                                              .max_lease_ms = LEASE_MS};
    quorlock_sync_client *sync_client = NULL;
    int status = quorlock_sync_client_new(&sync_client, &options, &error);
    enum end end;

    if (status != 0) return status == QUORLOCK_ERR_NOMEM && error.text[0] != '\0' ? NOT_OPENED : WRONG;
    end = acquire_once(sync_client);
    return quorlock_sync_client_close(sync_client) == 0 ? end : WRONG;
}

/* Runs live() with the descriptors 0 to limit - 1, of which three are taken; fails on anything that it printed.
 */
static int end_with(rlim_t limit)
{
    int output[2], status = 0;
    char text[TEXT_SIZE];
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe(output), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit few = {limit, limit};

        (void)dup2(output[1], STDOUT_FILENO);
        (void)dup2(output[1], STDERR_FILENO);
        for (int fd = STDERR_FILENO + 1; fd < FD_MAX; fd++) close(fd);
        _exit(setrlimit(RLIMIT_NOFILE, &few) == 0 ? (int)live() : WRONG);
    }
    close(output[1]);
    n = read(output[0], text, sizeof(text) - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    close(output[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (n > 0) fail_msg("with %d descriptors it printed: %s", (int)limit, text);
    if (!WIFEXITED(status)) fail_msg("with %d descriptors it died of signal %d", (int)limit, WTERMSIG(status));
    return WEXITSTATUS(status);
}

SERVERS_TEST(few_descriptors_are_an_error_and_no_end)
{
    for (rlim_t limit = 3; limit <= 20; limit++) {
        int end = end_with(limit);

        print_message("  %d descriptors: %d\n", (int)limit, end);
        assert_true(end == WORKED || end == NOT_OPENED || end == NO_QUORUM);
        if (limit < 8) assert_int_equal(end, NOT_OPENED);
    }
    assert_int_equal(end_with(64), WORKED);
}
