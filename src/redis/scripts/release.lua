-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard] [, the counter]
-- ARGV owner [, guard as seen or '', token or '', the counter's life in ms]
-- 1: deleted; 0: no key; {holder, ttl}: somebody else's, left alone. Our own key goes whatever became of the
-- guard; where it is not as seen, 'GUARD' comes behind: {1, 'GUARD'}, {0, 'GUARD'}, {holder, ttl, 'GUARD'}.
--@ guarded
--@ fence
local broken = guard_broken(ARGV[2]) and 'GUARD'
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
if not holder then return broken and {0, broken} or 0 end
if holder ~= ARGV[1] then return {string.sub(holder, 1, 4096), redis.call('PTTL', KEYS[1]), broken} end
if ARGV[3] and ARGV[3] ~= '' then fence_carry(KEYS[#KEYS], ARGV[3], ARGV[4]) end
local done = redis.pcall('DEL', KEYS[1])
if type(done) == 'table' then return done end
-- Last and by pcall: a channel that is denied to us must not undo the answer.
redis.pcall('PUBLISH', 'quorlock:released:' .. KEYS[1], ARGV[1])
return broken and {1, broken} or 1
