-- SPDX-License-Identifier: BSD-3-Clause
-- Nil, or an error.
local function lock_set(key, owner, lease_ms)
  local done = redis.pcall('SET', key, owner, 'PX', lease_ms)
  if done.err then return done end
end
