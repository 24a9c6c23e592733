-- SPDX-License-Identifier: BSD-3-Clause
-- Lets a key live for so many ms, where it would end earlier: nil, or an error.
local function outlive(key, ms)
  local ttl = redis.pcall('PTTL', key)
  if type(ttl) == 'table' then return ttl end
  if ttl < ms then
    local done = redis.pcall('PEXPIRE', key, whole(ms))
    if type(done) == 'table' then return done end
  end
end
-- Sets the expiry of a lock that is ours to the lease where it would come earlier: nil, or an error. The reader's own
-- entry is last: it counts only while the others are there. A millisecond more makes up for the clock, which is rounded.
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
