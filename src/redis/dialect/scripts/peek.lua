-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the locks
-- {holder or nil, ttl, counter or 0, 1 where there is a guard, what is left of a quarantine in ms or -1}: of the
-- lock that is held longest, and the highest counter.
--@ around
--@ string_whose
--@ peek
return {holder, ttl, look_around()}
