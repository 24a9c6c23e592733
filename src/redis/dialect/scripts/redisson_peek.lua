-- SPDX-License-Identifier: BSD-3-Clause
-- As peek.lua, for hashes; the last element is the holder's count.
--@ around
--@ hash
--@ hash_whose
--@ hash_channel
--@ waiters
--@ peek
count = math.min(tonumber(string.match(count or '', '^%d+$') or 0), 4294967295)
local counter, kept, left = look_around()
local reply = {holder, ttl, counter, kept, left, count_waiters(ARGV[1])}
reply[#reply + 1] = count
return reply
