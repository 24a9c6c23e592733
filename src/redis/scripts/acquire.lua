-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard] [, the counter]
-- ARGV owner, lease in ms, guard as seen or '', 'strict' or 'repair' or '', floor or token or '', the counter's
-- life in ms, max_lease in ms
-- {1, counter, clock in us}: set; {holder, ttl}: somebody else's.
--@ guarded
--@ info
--@ moved
--@ clock
--@ fence
--@ count
local broken = guard_broken(ARGV[3])
if broken then return broken end
broken = ARGV[4] == 'strict' and guard_moved(ARGV[3])
if broken then return broken end
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
if holder then return {string.sub(holder, 1, 4096), redis.call('PTTL', KEYS[1])} end
local counter, now_us = fence_count(KEYS[#KEYS], ARGV[4] == 'repair', ARGV[5], ARGV[6], ARGV[7])
if not counter then return now_us end -- the error
local done = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if done.err then return done end
return {1, counter, now_us}
