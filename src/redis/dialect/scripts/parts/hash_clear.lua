-- SPDX-License-Identifier: BSD-3-Clause
-- Deletes a lock that is ours; returns nil, or an error. Redis deletes the key with its last field.
local function lock_clear(key, owner)
  local done = redis.pcall('HDEL', key, owner)
  if type(done) == 'table' then return done end
end
