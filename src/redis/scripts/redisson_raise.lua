-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard], the counter
-- ARGV owner, guard as seen or '', token, the counter's life in ms
-- {1, counter, clock in us}: the lock is ours, and the counter is the token, or higher; 0: no lock;
-- {holder, ttl}: somebody else's.
--@ guarded
--@ clock
--@ fence
--@ raised
--@ hash
local broken = guard_broken(ARGV[2])
if broken then return broken end
local ours = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(ours) == 'table' then return ours end
if ours == 0 then
  local holder, _, why = hash_owner(KEYS[1])
  return why or holder and {holder, redis.call('PTTL', KEYS[1])} or 0
end
return fence_raise(KEYS[#KEYS], ARGV[3], ARGV[4])
