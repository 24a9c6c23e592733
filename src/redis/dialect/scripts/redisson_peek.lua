-- SPDX-License-Identifier: BSD-3-Clause
-- As peek.lua, for hashes, without the others; the last element is the holder's count.
local explains, prefix = unpack(ARGV)
explains = explains == 'waiters'
--@ from hash: lock_whose, notice_channel
--@ from listing: longest_held, look_around, count_waiters
local holder, ttl, count, why = longest_held(lock_whose, KEYS)
if why then return why end
count = math.min(tonumber(string.match(count or '', '^%d+$') or 0), 4294967295)
local counter, kept, left = look_around(KEYS, explains)
local reply = {holder, ttl, counter, kept, left}
if explains then reply[6] = count_waiters(notice_channel(KEYS[1])) end
reply[#reply + 1] = count
return reply
