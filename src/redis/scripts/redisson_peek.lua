-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock
-- {holder or nil, ttl, counter or 0, 1 where there is a guard, what is left of a quarantine in ms or -1, count}
--@ around
--@ hash
local holder, count, why = hash_owner(KEYS[1])
if why then return why end
local ttl = holder and redis.call('PTTL', KEYS[1]) or -2
count = math.min(tonumber(string.match(count or '', '^%d+$') or 0), 4294967295)
local counter, kept, left = look_around(KEYS[1])
return {holder or false, ttl, counter, kept, left, count}
