-- SPDX-License-Identifier: BSD-3-Clause
-- Sets the expiry to the lease where it would come earlier: nil, or an error.
local function lock_lift(key, lease_ms)
  local ttl = redis.pcall('PTTL', key)
  if type(ttl) == 'table' then return ttl end
  if ttl < tonumber(lease_ms) then
    local done = redis.pcall('PEXPIRE', key, lease_ms)
    if type(done) == 'table' then return done end
  end
end
