-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock
-- {holder or nil, ttl, counter or 0, 1 where there is a guard, what is left of a quarantine in ms or -1}
--@ around
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
local ttl = holder and redis.call('PTTL', KEYS[1]) or -2
return {holder and string.sub(holder, 1, 4096), ttl, look_around(KEYS[1])}
