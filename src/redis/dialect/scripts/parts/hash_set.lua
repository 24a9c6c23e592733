-- SPDX-License-Identifier: BSD-3-Clause
-- Nil, or an error. The field is set to 1 and never counted up: the same request may come twice. It comes first:
-- it is a script's first write that the server refuses where memory is short, and PEXPIRE never.
local function lock_set(key, owner, lease_ms)
  local done = redis.pcall('HSET', key, owner, '1')
  if type(done) == 'table' then return done end
  done = redis.pcall('PEXPIRE', key, lease_ms)
  if type(done) == 'table' then
    -- Whoever may not set an expiry must not leave a lock that has none.
    redis.pcall('HDEL', key, owner)
    return done
  end
end
