-- SPDX-License-Identifier: BSD-3-Clause
-- Sets a lock; returns nil, or an error. The entry comes first: a server that is short of memory refuses only the first
-- write of a script.
local function lock_set(key, owner, lease_ms)
  if not shared[key] then
    local done = redis.pcall('SET', key, owner, 'PX', lease_ms)
    return done.err and done
  end
  local readers, ms, done = readers_of(key), tonumber(lease_ms) + 1, nil
  -- Without a sentinel the set holds only readers that have lost the lock.
  if held[key] then
    done = redis.pcall('ZREMRANGEBYSCORE', readers, '-inf', whole(now))
  else
    done = redis.pcall('DEL', readers)
  end
  if type(done) ~= 'table' then done = redis.pcall('ZADD', readers, whole(now + ms), owner) end
  if type(done) == 'table' then return done end
  if held[key] then
    done = outlive(key, ms)
  else
    done = redis.pcall('SET', key, sentinel, 'PX', whole(ms))
    done = done.err and done
  end
  done = done or outlive(readers, ms)
  if done then
    redis.pcall('ZREM', readers, owner)
    return done
  end
  for _, member in ipairs(own_intents[key] or {}) do redis.pcall('ZREM', intents_of(key), member) end
end
