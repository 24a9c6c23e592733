-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock
-- 0: no key; {holder, ttl}
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
if not holder then return 0 end
return {string.sub(holder, 1, 4096), redis.call('PTTL', KEYS[1])}
