-- SPDX-License-Identifier: BSD-3-Clause
-- Sets a lock; returns nil, or an error. NX, because a key of another type may have been read as missing.
local function lock_set(key, owner, lease_ms)
  local done = redis.pcall('SET', key, owner, 'NX', 'PX', lease_ms)
  if not done then
    --@ foreign
    return foreign(key, redis.pcall('GET', key))
  end
  if done.err then return done end
end
