-- SPDX-License-Identifier: BSD-3-Clause
-- Sets a lock; returns nil, or an error. The field is set to 1 and never incremented, because the same request may come
-- twice. HSET comes first: a server that is short of memory refuses only the first write of a script, and never
-- PEXPIRE.
local function lock_set(key, owner, lease_ms)
  local done = redis.pcall('HSET', key, owner, '1')
  if type(done) == 'table' then return done end
  done = redis.pcall('PEXPIRE', key, lease_ms)
  if type(done) == 'table' then
    -- A user who may not run PEXPIRE must not leave a lock without an expiry.
    redis.pcall('HDEL', key, owner)
    return done
  end
end
