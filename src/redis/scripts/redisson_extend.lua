-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard] [, the counter]
-- ARGV owner, lease in ms [, guard as seen or '', token or 0 or '', the counter's life in ms]
-- {1, clock in us}: extended; 0: no key; {holder, ttl}: somebody else's. An expiry is never made earlier.
--@ guarded
--@ clock
--@ fence
--@ hash
local broken = guard_broken(ARGV[3])
if broken then return broken end
local ours = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(ours) == 'table' then return ours end
local ttl = redis.call('PTTL', KEYS[1])
if ours == 0 then
  local holder, _, why = hash_owner(KEYS[1])
  return why or holder and {holder, ttl} or 0
end
if ttl < tonumber(ARGV[2]) then
  local done = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(done) == 'table' then return done end
end
if ARGV[4] and ARGV[4] ~= '' then fence_carry(KEYS[#KEYS], ARGV[4], ARGV[5]) end
return {1, clock_us() or 0}
