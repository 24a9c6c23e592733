-- SPDX-License-Identifier: BSD-3-Clause
-- Nil, or an error. NX, for what is no string may have been taken for nothing.
local function lock_set(key, owner, lease_ms)
  local done = redis.pcall('SET', key, owner, 'NX', 'PX', lease_ms)
  if not done then
    --@ foreign
    return foreign(key, redis.pcall('GET', key))
  end
  if done.err then return done end
end
