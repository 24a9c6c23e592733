-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard], the counter
-- ARGV owner, guard as seen or '', token, the counter's life in ms
-- {1, counter, clock in us}: the lock is ours, and the counter is the token, or higher; 0: no lock;
-- {holder, ttl}: somebody else's.
--@ guarded
--@ clock
--@ fence
--@ raised
local broken = guard_broken(ARGV[2])
if broken then return broken end
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
if not holder then return 0 end
if holder ~= ARGV[1] then return {string.sub(holder, 1, 4096), redis.call('PTTL', KEYS[1])} end
return fence_raise(KEYS[#KEYS], ARGV[3], ARGV[4])
