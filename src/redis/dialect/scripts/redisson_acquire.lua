-- SPDX-License-Identifier: BSD-3-Clause
-- As acquire.lua, for hashes. Rules 1.14 and 4.10.
local n, owner, lease_ms, seen, token, life_ms, how, max_lease_ms = unpack(ARGV)
n = tonumber(n)
--@ from guard: guard_refuses
local why = guard_refuses(KEYS[n + 1], seen, how)
if why then return why end
--@ from server: clock_us
--@ from hash: lock_whose, lock_set, lock_clear, notice_channel
--@ from fence: fence_count
--@ from locks: lock_lift, take
local count = fence_count(KEYS, n, token, life_ms, how, max_lease_ms)
return take(lock_whose, lock_set, lock_lift, lock_clear, notice_channel, KEYS, 1, n, owner, lease_ms, clock_us, count)
