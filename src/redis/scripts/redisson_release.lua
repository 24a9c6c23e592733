-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard] [, the counter]
-- ARGV owner [, guard as seen or '', token or '', the counter's life in ms]
-- 1: deleted; 0: no key; {holder, ttl}: somebody else's, left alone. Our own field goes whatever became of the
-- guard; where it is not as seen, 'GUARD' comes behind: {1, 'GUARD'}, {0, 'GUARD'}, {holder, ttl, 'GUARD'}.
--@ guarded
--@ fence
--@ hash
--@ notice
local broken = guard_broken(ARGV[2]) and 'GUARD'
local ours = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(ours) == 'table' then return ours end
if ours == 0 then
  local holder, _, why = hash_owner(KEYS[1])
  if why then return why end
  if holder then return {holder, redis.call('PTTL', KEYS[1]), broken} end
  return broken and {0, broken} or 0
end
if ARGV[3] and ARGV[3] ~= '' then fence_carry(KEYS[#KEYS], ARGV[3], ARGV[4]) end
-- The key goes with its last field.
local done = redis.pcall('HDEL', KEYS[1], ARGV[1])
if type(done) == 'table' then return done end
notice_released(KEYS[1])
return broken and {1, broken} or 1
