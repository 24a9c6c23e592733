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
    local over = redis.pcall('ZRANGEBYSCORE', readers, '-inf', whole(now), 'LIMIT', '0', '16')
    done = over.err and over or over[1] and redis.pcall('ZREM', readers, unpack(over)) or 0
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
  if own_intents[key] then queue_remove(intents_of(key), waiter) end
end
