-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks [, the guard] [, the n counters]
-- ARGV n, owner, lease in ms [, guard as read or '', token or 0 or '', the counters' life in ms]
-- Extends all locks or none. Returns {1, clock in us or 0} if all are extended; 0 if some are missing; {holder, ttl} if
-- another owner holds one. Rules 1.14 and 3.1.
local n, owner, lease_ms, seen, token, life_ms = unpack(ARGV)
--@ from guard: guard_broken
--@ from server: clock_us
--@ from locks: lock_lift
local fenced, broken = token and token ~= '', guard_broken(KEYS[n + 1], seen)
-- Most renewals are for one lock that is ours, while the guard is as read and the counter, if there is one, equals the
-- token. They are done first, without the functions that the others need, because even a function that is not called
-- costs time.
local single = n == '1' and not broken and redis.pcall('GET', KEYS[1]) == owner
  and (not fenced or redis.pcall('GET', KEYS[#KEYS]) == token)
if single and not lock_lift(KEYS[1], lease_ms) then
  if fenced then lock_lift(KEYS[#KEYS], life_ms) end
  return {1, clock_us() or 0}
end
if broken then return broken end
n = tonumber(n)
--@ from string: lock_whose
--@ from locks: prolong
local why = prolong(lock_whose, lock_lift, KEYS, 1, n, owner, lease_ms)
if why then return why end
if fenced then
  --@ from fence: fence_carry
  fence_carry(KEYS, #KEYS - n + 1, #KEYS, token, life_ms)
end
return {1, clock_us() or 0}
