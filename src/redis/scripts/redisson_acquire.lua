-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard] [, the counter]
-- ARGV owner, lease in ms, guard as seen or '', 'strict' or 'repair' or '', floor or token or '', the counter's
-- life in ms, max_lease in ms
-- {1, counter, clock in us}: set, also where this very owner's field was there (the same request again: the
-- field is set to 1 and never counted up); {holder, ttl}: somebody else's.
--@ guarded
--@ info
--@ fence
--@ hash
local broken = guard_broken(ARGV[3])
if broken then return broken end
if ARGV[4] == 'strict' then
  local run, replid = info('server', 'run_id'), info('replication', 'master_replid')
  if run and replid and not string.find(ARGV[3], '|' .. run .. '|' .. replid .. '|', 1, true) then
    return redis.error_reply('GUARD another server than before answers: it may not have our locks')
  end
end
local ours = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(ours) == 'table' then return ours end
local ttl = redis.call('PTTL', KEYS[1])
if ours == 0 then
  local holder, _, why = hash_owner(KEYS[1])
  if why then return why end
  if holder then return {holder, ttl} end
end
local time = redis.pcall('TIME')
if time.err then return time end
local now_us = time[1] * 1000000 + time[2]
local counter = 0
if ARGV[5] ~= '' then
  local fence, why = KEYS[#KEYS], nil
  counter, why = fence_read(fence)
  if not counter then return why end
  if ARGV[4] == 'repair' then
    counter = math.max(counter, tonumber(ARGV[5]))
  else
    -- A client whose clock is far ahead must not use up the numbers.
    counter = math.max(counter + 1, math.min(tonumber(ARGV[5]), now_us + tonumber(ARGV[7]) * 500))
  end
  -- Before the lock: where memory is short, no lock without its counter stays.
  why = counter > 0 and fence_store(fence, counter, ARGV[6])
  if why then return why end
end
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
