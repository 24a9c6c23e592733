-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the locks
-- {holder or nil, ttl, counter or 0, 1 where there is a guard, the rest of a quarantine in ms or -1}: of the lock with
-- the longest ttl, and the highest counter.
--@ around
--@ string_whose
--@ peek
return {holder, ttl, look_around()}
