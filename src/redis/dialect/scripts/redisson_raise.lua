-- SPDX-License-Identifier: BSD-3-Clause
-- As raise.lua, for hashes. Rule 5.3.
local n, owner, _, seen, token, life_ms = unpack(ARGV)
--@ from guard: guard_broken
local why = guard_broken(KEYS[n + 1], seen)
if why then return why end
--@ from hash: lock_whose
--@ from server: clock_us
--@ from locks: raise
return raise(lock_whose, KEYS, tonumber(n), owner, clock_us, KEYS, token, life_ms)
