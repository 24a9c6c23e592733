-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard] [, the counter]
-- ARGV owner, lease in ms, guard as seen or '', 'strict' or 'repair' or '', floor or token or '', the counter's
-- life in ms, max_lease in ms
-- {1, counter, clock in us}: set, also where this very owner's field was there (the same request again: the
-- field is set to 1 and never counted up); {holder, ttl}: somebody else's.
--@ guarded
--@ info
--@ moved
--@ clock
--@ fence
--@ count
--@ hash
local broken = guard_broken(ARGV[3])
if broken then return broken end
broken = ARGV[4] == 'strict' and guard_moved(ARGV[3])
if broken then return broken end
local ours = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(ours) == 'table' then return ours end
local ttl = redis.call('PTTL', KEYS[1])
if ours == 0 then
  local holder, _, why = hash_owner(KEYS[1])
  if why then return why end
  if holder then return {holder, ttl} end
end
local counter, now_us = fence_count(KEYS[#KEYS], ARGV[4] == 'repair', ARGV[5], ARGV[6], ARGV[7])
if not counter then return now_us end -- the error
-- The field first: it is a script's first write that the server refuses where memory is short, and PEXPIRE never.
local done = redis.pcall('HSET', KEYS[1], ARGV[1], '1')
if type(done) == 'table' then return done end
if ttl < tonumber(ARGV[2]) then
  done = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(done) == 'table' then
    -- Whoever may not set an expiry must not leave a lock that has none.
    redis.pcall('HDEL', KEYS[1], ARGV[1])
    return done
  end
end
return {1, counter, now_us}
