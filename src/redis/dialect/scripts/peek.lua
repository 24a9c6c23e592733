-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the locks
-- ARGV ['waiters']
-- {holder or nil, ttl, counter or 0, 1 where there is a guard, the rest of a quarantine in ms or -1 [, waiters]}: of
-- the lock with the longest ttl, and the highest counter.
--@ around
--@ string_whose
--@ string_channel
--@ waiters
--@ peek
local counter, kept, left = look_around()
return {holder, ttl, counter, kept, left, count_waiters(ARGV[1])}
