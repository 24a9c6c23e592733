/* SPDX-License-Identifier: BSD-3-Clause */
#include "redisson_peer.h"

#include "fixture.h"

static const char acquire_script[] = "if redis.call('exists', KEYS[1]) == 0 or "
                                     "redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
                                     "redis.call('hincrby', KEYS[1], ARGV[2], 1) "
                                     "redis.call('pexpire', KEYS[1], ARGV[1]) return -99 end "
                                     "return redis.call('pttl', KEYS[1])";

/* A reader looks for a mode, and not for a lock. Its hold is as long as a key beside the hash, which is how it
 * knows other readers: the last one deletes the hash, whatever else is in it. */
static const char read_script[] = "if redis.call('hget', KEYS[1], 'mode') == 'write' then "
                                  "return redis.call('pttl', KEYS[1]) end "
                                  "redis.call('hset', KEYS[1], 'mode', 'read', ARGV[2], 1) "
                                  "redis.call('pexpire', KEYS[1], ARGV[1]) return -99";
static const char read_end_script[] = "if redis.call('hdel', KEYS[1], ARGV[2]) == 0 then return -99 end "
                                      "redis.call('del', KEYS[1]) return 1";

static long long run(const struct server *server, const char *script, const char *key, const char *owner,
                     uint32_t lease_ms)
{
    return server_ask_number(server, "EVAL %s 1 %s %u %s", script, key, lease_ms, owner);
}

long long peer_acquire(const struct server *server, const char *key, const char *owner, uint32_t lease_ms)
{
    return run(server, acquire_script, key, owner, lease_ms);
}

long long peer_read(const struct server *server, const char *key, const char *owner, uint32_t lease_ms)
{
    return run(server, read_script, key, owner, lease_ms);
}

long long peer_read_end(const struct server *server, const char *key, const char *owner)
{
    return run(server, read_end_script, key, owner, 0);
}

long long peer_counts(const struct server *server, const char *key, const char *owner)
{
    return run(server, "return tonumber(redis.call('hget', KEYS[1], ARGV[2]) or 0)", key, owner, 0);
}

long long peer_fields(const struct server *server, const char *key)
{
    return run(server, "return redis.call('hlen', KEYS[1])", key, "", 0);
}
