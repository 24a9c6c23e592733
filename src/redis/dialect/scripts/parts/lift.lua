-- SPDX-License-Identifier: BSD-3-Clause
-- Moves the expiry to the end of the lease, if it would come earlier; returns nil, or an error. From Redis 7 on, which
-- is also the first to tell scripts its version, one command does it. GT ignores a key without an expiry; that is left
-- to the other commands.
local function lock_lift(key, lease_ms)
  if redis.REDIS_VERSION_NUM and redis.pcall('PEXPIRE', key, lease_ms, 'GT') == 1 then return end
  local ttl = redis.pcall('PTTL', key)
  if type(ttl) == 'table' then return ttl end
  if ttl < tonumber(lease_ms) then
    local done = redis.pcall('PEXPIRE', key, lease_ms)
    if type(done) == 'table' then return done end
  end
end
