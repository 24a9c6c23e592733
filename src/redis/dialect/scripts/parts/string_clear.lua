-- SPDX-License-Identifier: BSD-3-Clause
-- Deletes a lock that is ours; returns nil, or an error.
local function lock_clear(key)
  local done = redis.pcall('DEL', key)
  if type(done) == 'table' then return done end
end
