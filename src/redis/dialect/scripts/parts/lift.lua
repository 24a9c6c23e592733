-- SPDX-License-Identifier: BSD-3-Clause
-- Sets the expiry to the lease where it would come earlier: nil, or an error. One command does it from Redis 7 on, which
-- is also the first to tell scripts its version; a key without an expiry is left to the others.
local function lock_lift(key, lease_ms)
  if redis.REDIS_VERSION_NUM and redis.pcall('PEXPIRE', key, lease_ms, 'GT') == 1 then return end
  local ttl = redis.pcall('PTTL', key)
  if type(ttl) == 'table' then return ttl end
  if ttl < tonumber(lease_ms) then
    local done = redis.pcall('PEXPIRE', key, lease_ms)
    if type(done) == 'table' then return done end
  end
end
