-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock; ARGV[1] owner
-- 1: deleted; 0: no key; {holder, ttl}: somebody else's, left alone.
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
if not holder then return 0 end
if holder ~= ARGV[1] then return {string.sub(holder, 1, 4096), redis.call('PTTL', KEYS[1])} end
local done = redis.pcall('DEL', KEYS[1])
if type(done) == 'table' then return done end
-- Last and by pcall: a channel that is denied to us must not undo the answer.
redis.pcall('PUBLISH', 'quorlock:released:' .. KEYS[1], ARGV[1])
return 1
