/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ANSWER_LIMIT_US   20000000u
#define LOG_SIZE          2000
#define COMMAND_LIMIT_SEC 20

uint64_t clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

uint64_t wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void cluster_pause_us(uint64_t us)
{
    poll(NULL, 0, (int)((us + 999) / 1000));
}

static struct sockaddr_in loopback(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/*
 * A bound socket that does not listen keeps others away from the port: a second bind fails, and no connection
 * gets it as its own port. Redis binds with SO_REUSEADDR, and as ours has it too (set after our bind, so that
 * we ourselves share nobody's port) it may.
 */
int reserve_port(uint16_t *ret_port)
{
    int yes = 1;
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0) {
        fail_msg("no free port: %s", strerror(errno));
    }
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void write_config(const struct server *server)
{
    char path[TEXT_SIZE + 16];
    FILE *file;

    snprintf(path, sizeof(path), "%s/redis.conf", server->folder);
    file = fopen(path, "w");
    if (file == NULL) fail_msg("%s: %s", path, strerror(errno));
    fprintf(file, "port %u\nbind 127.0.0.1\nprotected-mode no\ndaemonize no\ndir %s\n", server->port, server->folder);
    fprintf(file, "unixsocket %s/s\nsave \"\"\nappendonly yes\nappendfsync always\n", server->folder);
    fprintf(file, "logfile %s/log\ndatabases 16\n", server->folder);
    if (server->password != NULL) fprintf(file, "requirepass %s\n", server->password);
    if (server->more != NULL) fprintf(file, "%s\n", server->more);
    if (server->tls_port != 0) {
        fprintf(file, "tls-port %u\ntls-auth-clients no\ntls-ca-cert-file %s/../cert.pem\n", server->tls_port,
                server->folder);
        fprintf(file, "tls-cert-file %s/../cert.pem\ntls-key-file %s/../key.pem\n", server->folder, server->folder);
    }
    fclose(file);
}

static pid_t spawn(const struct server *server)
{
    const char *program = getenv("REDIS_SERVER");
    char config[TEXT_SIZE + 16];
    pid_t parent = getpid();
    pid_t pid;

    if (program == NULL || program[0] == '\0') program = "redis-server";
    snprintf(config, sizeof(config), "%s/redis.conf", server->folder);
    pid = fork();
    if (pid < 0) fail_msg("fork: %s", strerror(errno));
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execlp(program, program, config, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static redisContext *reach(const struct server *server)
{
    const struct timeval limit = {.tv_sec = COMMAND_LIMIT_SEC};
    redisContext *context = redisConnectWithTimeout("127.0.0.1", server->port, limit);

    if (context == NULL || context->err != 0) {
        if (context != NULL) redisFree(context);
        return NULL;
    }
    redisSetTimeout(context, limit);
    if (server->password != NULL) {
        redisReply *reply = redisCommand(context, "AUTH %s", server->password);

        if (reply != NULL) freeReplyObject(reply);
    }
    return context;
}

/* Another program's server may have been quicker at the port, so the process id is compared. */
static bool answers(const struct server *server)
{
    redisContext *context = reach(server);
    char line[64];
    bool ours = false;
    redisReply *reply;

    if (context == NULL) return false;
    reply = redisCommand(context, "INFO server");
    snprintf(line, sizeof(line), "process_id:%d\r\n", (int)server->pid);
    if (reply != NULL && reply->type == REDIS_REPLY_STRING) ours = strstr(reply->str, line) != NULL;
    if (reply != NULL) freeReplyObject(reply);
    reply = ours ? redisCommand(context, "PING") : NULL;
    ours = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    if (reply != NULL) freeReplyObject(reply);
    redisFree(context);
    return ours;
}

static bool start_once(struct server *server)
{
    uint64_t until_us = clock_us() + ANSWER_LIMIT_US;

    write_config(server);
    server->pid = spawn(server);
    while (clock_us() < until_us) {
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return false;
        }
        if (answers(server)) return true;
        cluster_pause_us(5000);
    }
    server_kill(server);
    return false;
}

/* The last lines of what the server wrote: its folder does not outlive the test. */
static void print_log(const struct server *server)
{
    char path[TEXT_SIZE + 16], text[LOG_SIZE + 1];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "%s/log", server->folder);
    file = fopen(path, "r");
    if (file == NULL) return;
    if (fseek(file, -LOG_SIZE, SEEK_END) != 0) rewind(file);
    n = fread(text, 1, LOG_SIZE, file);
    text[n] = '\0';
    print_message("%s\n", text);
    fclose(file);
}

void server_start(struct server *server)
{
    assert_int_equal(server->pid, 0);
    if (start_once(server)) return;
    print_log(server);
    fail_msg("redis-server does not start on port %u", server->port);
}

static void signal_server(const struct server *server, int number)
{
    assert_true(server->pid > 0);
    assert_int_equal(kill(server->pid, number), 0);
}

void server_kill(struct server *server)
{
    if (server->pid == 0) return;
    signal_server(server, SIGKILL);
    while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR) continue;
    server->pid = 0;
}

/* Stopped is stopped only when the kernel says so. */
void server_freeze(struct server *server)
{
    int status = 0;

    signal_server(server, SIGSTOP);
    while (waitpid(server->pid, &status, WUNTRACED) < 0 && errno == EINTR) continue;
    assert_true(WIFSTOPPED(status));
}

void server_thaw(struct server *server)
{
    signal_server(server, SIGCONT);
}

void server_restart(struct server *server)
{
    server_kill(server);
    server_start(server);
}

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *where)
{
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void server_wipe(struct server *server)
{
    char path[TEXT_SIZE + 32];

    server_kill(server);
    snprintf(path, sizeof(path), "%s/appendonlydir", server->folder);
    remove_tree(path);
    snprintf(path, sizeof(path), "%s/appendonly.aof", server->folder);
    remove(path);
    server_start(server);
}

/* One certificate for all servers, which signs itself. */
static void make_certificate(struct cluster *cluster)
{
    char key[TEXT_SIZE];
    int status = -1;
    pid_t pid;

    snprintf(key, sizeof(key), "%s/key.pem", cluster->folder);
    snprintf(cluster->tls_ca, sizeof(cluster->tls_ca), "%s/cert.pem", cluster->folder);
    pid = fork();
    if (pid < 0) fail_msg("fork: %s", strerror(errno));
    if (pid == 0) {
        dup2(open("/dev/null", O_RDWR), STDERR_FILENO);
        execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
               "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
               cluster->tls_ca, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (status != 0) fail_msg("the openssl command makes no certificate");
}

static void choose_address(struct server *server, bool tls)
{
    server->reservations[0] = reserve_port(&server->port);
    server->reservations[1] = tls ? reserve_port(&server->tls_port) : -1;
    snprintf(server->address, sizeof(server->address), "%s127.0.0.1:%u", tls ? "rediss://" : "",
             tls ? server->tls_port : server->port);
    snprintf(server->unix_address, sizeof(server->unix_address), "unix://%.200s/s", server->folder);
}

void cluster_start(struct cluster *cluster, uint32_t n)
{
    bool tls = getenv("QUORLOCK_TEST_TLS") != NULL;

    memset(cluster, 0, sizeof(*cluster));
    assert_true(n <= CLUSTER_NODES_MAX);
    snprintf(cluster->folder, sizeof(cluster->folder), "/tmp/quorlock-test-XXXXXX");
    if (mkdtemp(cluster->folder) == NULL) fail_msg("mkdtemp: %s", strerror(errno));
    if (tls) make_certificate(cluster);
    for (uint32_t i = 0; i < n; i++) {
        struct server *server = &cluster->servers[i];

        snprintf(server->folder, sizeof(server->folder), "%s/%u", cluster->folder, i);
        if (mkdir(server->folder, 0700) != 0) fail_msg("mkdir: %s", strerror(errno));
        choose_address(server, tls);
        cluster->n = i + 1;
        cluster->addresses[i] = server->address;
        server_start(server);
    }
}

/* ---- who listens ---- */

struct listener {
    redisContext *context; /* NULL: closed */
};

static struct listener listeners[LISTENERS_MAX];

void listener_to(struct listener *listener, const char *command, const char *channel)
{
    redisReply *reply = redisCommand(listener->context, "%s %s", command, channel);

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) fail_msg("no %s", command);
    freeReplyObject(reply);
}

struct listener *server_listen(const struct server *server, const char *channel)
{
    struct listener *listener = listeners;

    while (listener->context != NULL) assert_true(++listener < listeners + LISTENERS_MAX);
    listener->context = reach(server);
    if (listener->context == NULL) fail_msg("no connection to the server on port %u", server->port);
    listener_to(listener, "SUBSCRIBE", channel);
    return listener;
}

void listener_next(struct listener *listener, char *ret_channel, char *ret, size_t size)
{
    redisReply *reply = NULL;

    if (redisGetReply(listener->context, (void **)&reply) != REDIS_OK)
        fail_msg("nothing was heard: %s", listener->context->errstr);
    assert_true(reply->elements >= 3);
    if (ret_channel != NULL) snprintf(ret_channel, size, "%s", reply->element[reply->elements - 2]->str);
    snprintf(ret, size, "%s", reply->element[reply->elements - 1]->str);
    freeReplyObject(reply);
}

void listener_close(struct listener *listener)
{
    if (listener->context != NULL) redisFree(listener->context);
    listener->context = NULL;
}

/* ---- the end ---- */

void cluster_end(struct cluster *cluster)
{
    for (size_t i = 0; i < LISTENERS_MAX; i++) listener_close(&listeners[i]);
    for (uint32_t i = 0; i < cluster->n; i++) {
        server_kill(&cluster->servers[i]);
        for (int k = 0; k < 2; k++)
            if (cluster->servers[i].reservations[k] >= 0) close(cluster->servers[i].reservations[k]);
    }
    cluster->n = 0;
    if (cluster->folder[0] != '\0') remove_tree(cluster->folder);
    cluster->folder[0] = '\0';
}

static redisReply *command(const struct server *server, const char *format, va_list arguments)
{
    redisContext *context = reach(server);
    redisReply *reply;

    if (context == NULL) fail_msg("no connection to the server on port %u", server->port);
    reply = redisvCommand(context, format, arguments);
    if (reply == NULL) fail_msg("'%s' on port %u: %s", format, server->port, context->errstr);
    redisFree(context);
    return reply;
}

static redisReply *ask(const struct server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
static redisReply *ask(const struct server *server, const char *format, ...)
{
    va_list arguments;
    redisReply *reply;

    va_start(arguments, format);
    reply = command(server, format, arguments);
    va_end(arguments);
    return reply;
}

void server_do(const struct server *server, const char *format, ...)
{
    va_list arguments;
    redisReply *reply;

    va_start(arguments, format);
    reply = command(server, format, arguments);
    va_end(arguments);
    if (reply->type == REDIS_REPLY_ERROR) fail_msg("'%s' on port %u: %s", format, server->port, reply->str);
    freeReplyObject(reply);
}

long long server_ask_number(const struct server *server, const char *format, ...)
{
    va_list arguments;
    redisReply *reply;
    long long number;

    va_start(arguments, format);
    reply = command(server, format, arguments);
    va_end(arguments);
    if (reply->type != REDIS_REPLY_INTEGER) fail_msg("'%s' on port %u: no number", format, server->port);
    number = reply->integer;
    freeReplyObject(reply);
    return number;
}

long long server_keys(const struct server *server, const char *prefix)
{
    return server_ask_number(server, "EVAL %s 0 %s", "return #redis.call('keys', ARGV[1] .. '*')", prefix);
}

void server_value(const struct server *server, const char *key, char *ret, size_t size)
{
    redisReply *reply = ask(server, "GET %s", key);

    snprintf(ret, size, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
    freeReplyObject(reply);
}

/* The number behind a word of what INFO tells; 0 where the word is not there. */
static long long info_number(const struct server *server, const char *section, const char *word)
{
    redisReply *reply = ask(server, "INFO %s", section);
    const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, word) : NULL;
    long long number = at != NULL ? strtoll(at + strlen(word), NULL, 10) : 0;

    freeReplyObject(reply);
    return number;
}

long long server_script_calls(const struct server *server)
{
    return info_number(server, "commandstats", "cmdstat_eval:calls=") +
           info_number(server, "commandstats", "cmdstat_evalsha:calls=");
}

long long server_lock_calls(const struct server *server)
{
    return info_number(server, "commandstats", "cmdstat_set:calls=") + server_script_calls(server);
}

long long server_clients(const struct server *server)
{
    return info_number(server, "clients", "connected_clients:") - 1;
}
