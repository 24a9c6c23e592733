-- SPDX-License-Identifier: BSD-3-Clause
-- Nil, or an error. The field is set to 1 and never incremented: the same request may come twice. It comes first: a
-- server short of memory refuses a script's first write, but never PEXPIRE.
local function lock_set(key, owner, lease_ms)
  local done = redis.pcall('HSET', key, owner, '1')
  if type(done) == 'table' then return done end
  done = redis.pcall('PEXPIRE', key, lease_ms)
  if type(done) == 'table' then
    -- A user without the right to PEXPIRE must not leave a lock without an expiry.
    redis.pcall('HDEL', key, owner)
    return done
  end
end
