-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard] [, the counter]
-- ARGV owner, lease in ms, guard as seen or '', 'strict' or 'repair' or '', floor or token or '', the counter's
-- life in ms, max_lease in ms
-- {1, counter, clock in us}: set; {holder, ttl}: somebody else's.
--@ guarded
--@ info
--@ fence
local broken = guard_broken(ARGV[3])
if broken then return broken end
if ARGV[4] == 'strict' then
  local run, replid = info('server', 'run_id'), info('replication', 'master_replid')
  if run and replid and not string.find(ARGV[3], '|' .. run .. '|' .. replid .. '|', 1, true) then
    return redis.error_reply('GUARD another server than before answers: it may not have our locks')
  end
end
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
if holder then return {string.sub(holder, 1, 4096), redis.call('PTTL', KEYS[1])} end
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
local done = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if done.err then return done end
return {1, counter, now_us}
