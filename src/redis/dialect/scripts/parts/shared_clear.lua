-- SPDX-License-Identifier: BSD-3-Clause
--@ turn_left
-- Lets the sentinel, which is there, and the set expire with the last reader, and deletes them if there is none. But
-- while readers whose turn it is have not come yet, the sentinel stays for them. Returns nil, or an error.
local function settle_readers(key)
  local readers, till = readers_of(key), 0
  local last = redis.pcall('ZRANGE', readers, '-1', '-1', 'WITHSCORES')
  if last.err then return last end
  if last[2] then till = tonumber(last[2]) end
  local read_till = till
  if till <= now then
    till = now + turn_left(intents_of(key), read_us)
  end
  local done
  if till > now then
    done = redis.pcall('PEXPIRE', key, whole(till - now))
    -- The reader that released may have had a longer lease; the entries of others need not stay that long. If all have
    -- expired this deletes the set.
    if type(done) ~= 'table' then done = redis.pcall('PEXPIRE', readers, whole(read_till - now)) end
  else
    done = redis.pcall('DEL', key, readers)
    held[key] = nil
  end
  if type(done) == 'table' then return done end
end
-- Deletes a lock that is ours; returns nil, or an error.
local function lock_clear(key, owner)
  local done
  if shared[key] then
    done = redis.pcall('ZREM', readers_of(key), owner)
    if type(done) ~= 'table' then done = settle_readers(key) end
  else
    done = redis.pcall('DEL', key)
  end
  if type(done) == 'table' then return done end
end
