-- SPDX-License-Identifier: BSD-3-Clause
-- As extend.lua, for keys some of which are shared. The last arguments are the modes, as in modules/shared.lua [, and
-- the prefix]. Rules 3.1 and 8.3.
local n, owner, lease_ms, seen, token, life_ms, modes, prefix = unpack(ARGV)
n = tonumber(n)
--@ from shared: shared_locks, shared_whose, shared_lift
local locks, request = shared_locks(KEYS, n, modes)
if not locks then return request end
--@ from guard: guard_broken
local why = guard_broken(KEYS[n + 1], seen)
if why then return why end
--@ from locks: prolong
why = prolong(shared_whose, shared_lift, locks, 1, n, owner, lease_ms)
if why then return why end
if token ~= '' then
  --@ from fence: fence_carry
  fence_carry(KEYS, #KEYS - n + 1, #KEYS, token, life_ms)
end
return {1, request.us}
