-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the locks
-- ARGV ['waiters' or '' [, the prefix]]
-- Returns {holder or nil, ttl, counter or 0, the cause of a quarantine or '' without a guard, its rest in ms or -1 [,
-- number of waiters, others (list_others() of modules/listing.lua) of the first key]}. The holder is that of the lock
-- with the longest ttl; the counter is the highest.
local explains, prefix = unpack(ARGV)
explains = explains == 'waiters'
--@ from string: lock_whose
--@ from listing: longest_held, look_around
local holder, ttl, _, why = longest_held(lock_whose, KEYS)
if why then return why end
local counter, kept, left = look_around(KEYS, explains)
if not explains then return {holder, ttl, counter, kept, left} end
--@ from string: notice_channel
--@ from listing: count_waiters, list_others
local others = list_others(KEYS[1], 0)
return {holder, ttl, counter, kept, left, count_waiters(notice_channel(KEYS[1])), others}
