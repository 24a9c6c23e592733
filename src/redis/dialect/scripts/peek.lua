-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the locks
-- ARGV ['waiters']
-- Returns {holder or nil, ttl, counter or 0, the cause of a quarantine or '' without a guard, its rest in ms or -1 [,
-- number of waiters, others (parts/others.lua) of the first key]}. The holder is that of the lock with the longest ttl;
-- the counter is the highest.
--@ get
--@ around
--@ string_whose
--@ string_channel
--@ waiters
--@ others
--@ peek
local counter, kept, left = look_around()
if not ARGV[1] then return {holder, ttl, counter, kept, left} end
local others = list_others(KEYS[1], 0)
return {holder, ttl, counter, kept, left, count_waiters(ARGV[1]), others}
