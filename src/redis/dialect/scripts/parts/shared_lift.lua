-- SPDX-License-Identifier: BSD-3-Clause
-- Lets a key live for at least so many ms; returns nil, or an error.
local function outlive(key, ms)
  local ttl = redis.pcall('PTTL', key)
  if type(ttl) == 'table' then return ttl end
  if ttl < ms then
    local done = redis.pcall('PEXPIRE', key, whole(ms))
    if type(done) == 'table' then return done end
  end
end
-- Moves the expiry of a lock that is ours to the end of the lease, if it would come earlier; returns nil, or an error.
-- The reader's own entry is written last, because it counts only while the other keys exist. One millisecond is added
-- because the clock is rounded.
local function lock_lift(key, lease_ms)
  local ms = tonumber(lease_ms) + 1
  if not shared[key] then return outlive(key, ms - 1) end
  local till = redis.pcall('ZSCORE', readers_of(key), owner)
  if type(till) == 'table' then return till end
  local done = outlive(key, ms) or outlive(readers_of(key), ms)
  if not done and (not till or tonumber(till) < now + ms) then
    done = redis.pcall('ZADD', readers_of(key), whole(now + ms), owner)
  end
  if type(done) == 'table' then return done end
end
