-- SPDX-License-Identifier: BSD-3-Clause
-- As extend.lua, for hashes. Rules 1.14 and 3.1.
local n, owner, lease_ms, seen, token, life_ms = unpack(ARGV)
--@ from guard: guard_broken
local why = guard_broken(KEYS[n + 1], seen)
if why then return why end
n = tonumber(n)
--@ from server: clock_us
--@ from hash: lock_whose
--@ from locks: lock_lift, prolong
why = prolong(lock_whose, lock_lift, KEYS, 1, n, owner, lease_ms)
if why then return why end
if token and token ~= '' then
  --@ from fence: fence_carry
  fence_carry(KEYS, #KEYS - n + 1, #KEYS, token, life_ms)
end
return {1, clock_us() or 0}
