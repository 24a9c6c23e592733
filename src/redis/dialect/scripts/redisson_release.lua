-- SPDX-License-Identifier: BSD-3-Clause
-- As release.lua, for hashes, which are not kept. Rules 2.2 and 2.10.
local n, owner, _, seen, token, life_ms, how = unpack(ARGV)
--@ from guard: guard_broken
local broken = guard_broken(KEYS[n + 1], seen) and 'GUARD'
n = tonumber(n)
local carry
if token and token ~= '' then
  --@ from fence: fence_carry
  carry = function() fence_carry(KEYS, #KEYS - n + 1, #KEYS, token, life_ms) end
end
--@ from hash: lock_whose, lock_clear, notice_released
--@ from locks: give_back
return give_back(lock_whose, lock_clear, notice_released, KEYS, 1, n, owner, how, broken, carry)
