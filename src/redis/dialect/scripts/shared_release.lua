-- SPDX-License-Identifier: BSD-3-Clause
-- As release.lua, for keys some of which are shared. The last arguments are the modes, as in modules/shared.lua [, and
-- the prefix]. A shared key loses only our own entry; the last reader's release notifies the waiters. Rules 2.2 and
-- 8.3.
local n, owner, _, seen, token, life_ms, how, modes, prefix = unpack(ARGV)
n = tonumber(n)
--@ from shared: shared_locks, shared_whose, shared_clear, shared_notice
local locks, request = shared_locks(KEYS, n, modes)
if not locks then return request end
--@ from guard: guard_broken
local broken = guard_broken(KEYS[n + 1], seen) and 'GUARD'
local carry
if token ~= '' then
  --@ from fence: fence_carry
  carry = function() fence_carry(KEYS, #KEYS - n + 1, #KEYS, token, life_ms) end
end
--@ from locks: give_back
return give_back(shared_whose, shared_clear, shared_notice, locks, 1, n, owner, how, broken, carry)
