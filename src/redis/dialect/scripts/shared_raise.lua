-- SPDX-License-Identifier: BSD-3-Clause
-- As raise.lua, for keys some of which are shared. The last arguments are the modes, as in modules/shared.lua [, and
-- the prefix]. Rule 5.3.
local n, owner, _, seen, token, life_ms, modes, prefix = unpack(ARGV)
n = tonumber(n)
--@ from shared: shared_locks, shared_whose
local locks, request = shared_locks(KEYS, n, modes)
if not locks then return request end
--@ from guard: guard_broken
local why = guard_broken(KEYS[n + 1], seen)
if why then return why end
local function clock() return request.us end
--@ from locks: raise
return raise(shared_whose, locks, n, owner, clock, KEYS, token, life_ms)
