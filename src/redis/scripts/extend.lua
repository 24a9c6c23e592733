-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock; ARGV[1] owner; ARGV[2] lease in ms
-- 1: extended; 0: no key; {holder, ttl}: somebody else's. An expiry is never made earlier.
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
if not holder then return 0 end
local ttl = redis.call('PTTL', KEYS[1])
if holder ~= ARGV[1] then return {string.sub(holder, 1, 4096), ttl} end
if ttl < tonumber(ARGV[2]) then
  local done = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(done) == 'table' then return done end
end
return 1
