-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks [, the guard], the n counters
-- ARGV n, owner, ms, guard as read or '', token, the counters' life in ms
-- Raises the counters to the token if all locks are ours. Returns {1, counter, clock in us}, where counter is the token
-- or a higher one that was found; 0 if some locks are missing; {holder, ttl} if another owner holds one. Rule 5.3.
local n, owner, _, seen, token, life_ms = unpack(ARGV)
--@ from guard: guard_broken
local why = guard_broken(KEYS[n + 1], seen)
if why then return why end
--@ from string: lock_whose
--@ from server: clock_us
--@ from locks: raise
return raise(lock_whose, KEYS, tonumber(n), owner, clock_us, KEYS, token, life_ms)
