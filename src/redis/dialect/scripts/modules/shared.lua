-- SPDX-License-Identifier: BSD-3-Clause
-- A shared lock on KEY uses two more keys (rule 8.2):
--   KEY                   the string quorlock:readers, the sentinel, so that exclusive locks and other clients find the
--                         key taken. It expires with the last reader.
--   quorlock:readers:KEY  a sorted set: a reader's owner -> when it expires, in ms of this server's clock. An entry
--                         counts only while the sentinel exists.
--   quorlock:intents:KEY  the clients that wait (queue.lua): a writer, w, that readers block; younger readers wait
--                         behind it. m: the same, of a list that also reads other keys. r: a reader that is blocked.
-- Here each `lock` is a table: its key, whether it is shared, the request, and, when it has been looked at, `held`,
-- what the key held. All locks of a request have one `request`: the locks, their modes, the server's clock in us and in
-- ms; and for intents.lua the waiter's name and how many us it has waited.
--@ from server: clock_us
--@ from queue: whole
--@ from intents: turn_left
--@ from string: notice_channel, notice_released
--@ from names: name_of

-- shared_locks - return the locks at the first n keys, and the request; or nil and an error. modes has one letter for
-- each: 's' shared, 'x' exclusive.
local function shared_locks(keys, n, modes)
  local us, why = clock_us()
  if not us then return nil, why end
  local locks = {}
  local request = {locks = locks, modes = modes, us = us, now = math.floor(us / 1000)}
  for i = 1, n do locks[i] = {key = keys[i], shared = string.sub(modes, i, i) == 's', request = request} end
  return locks, request
end

-- readers_of - return the set of the key's readers.
local function readers_of(key)
  return name_of('quorlock:readers:', key)
end

-- shared_state - return the state of a lock. Nil: free for its mode; true: ours; a string: who blocks it, and if that
-- is a waiting client, for how long yet; a table: an error. request.waits, if it is set, is asked about those that
-- wait, as waits_before(). Rules 8.1 and 8.4.
local function shared_state(lock, owner)
  local key, request = lock.key, lock.request
  local holder = redis.pcall('GET', key)
  if type(holder) == 'table' then
    --@ from errors: foreign
    return foreign(key, holder)
  end
  lock.held = holder
  if holder and (not lock.shared or holder ~= 'quorlock:readers') then
    return holder == owner or string.sub(holder, 1, 4096)
  end
  if not lock.shared then return nil end
  if holder then
    local till = redis.pcall('ZSCORE', readers_of(key), owner)
    if type(till) == 'table' then return till end
    if till and tonumber(till) > request.now then return true end
  end
  if request.waits then return request.waits(lock) end
end

-- shared_whose - return the same, and also for how long a holder blocks it.
local function shared_whose(lock, owner)
  local state, ttl = shared_state(lock, owner)
  if not ttl and type(state) == 'string' then ttl = redis.pcall('PTTL', lock.key) end
  return state, ttl
end

-- outlive - let a key live for at least so many ms; return nil, or an error.
local function outlive(key, ms)
  local ttl = redis.pcall('PTTL', key)
  if type(ttl) == 'table' then return ttl end
  if ttl < ms then
    local done = redis.pcall('PEXPIRE', key, whole(ms))
    if type(done) == 'table' then return done end
  end
end

-- shared_lift - move the expiry of a lock that is ours to the end of the lease, if it would come earlier; return nil,
-- or an error. The reader's own entry is written last, because it counts only while the other keys exist. One
-- millisecond is added because the clock is rounded. Rule 8.3.
local function shared_lift(lock, lease_ms, owner)
  local key, ms = lock.key, tonumber(lease_ms) + 1
  if not lock.shared then return outlive(key, ms - 1) end
  local readers, now = readers_of(key), lock.request.now
  local till = redis.pcall('ZSCORE', readers, owner)
  if type(till) == 'table' then return till end
  local done = outlive(key, ms) or outlive(readers, ms)
  if not done and (not till or tonumber(till) < now + ms) then
    done = redis.pcall('ZADD', readers, whole(now + ms), owner)
  end
  if type(done) == 'table' then return done end
end

-- shared_set - set a lock; return nil, or an error. The entry comes first: a server that is short of memory refuses
-- only the first write of a script. Rules 8.2 and 8.6.
local function shared_set(lock, owner, lease_ms)
  local key, done = lock.key, nil
  if not lock.shared then
    done = redis.pcall('SET', key, owner, 'PX', lease_ms)
    return done.err and done
  end
  local readers, ms, now = readers_of(key), tonumber(lease_ms) + 1, lock.request.now
  local is_first = not lock.held
  -- Without a sentinel the set holds only readers that have lost the lock.
  if lock.held then
    local over = redis.pcall('ZRANGEBYSCORE', readers, '-inf', whole(now), 'LIMIT', '0', '16')
    done = over.err and over or over[1] and redis.pcall('ZREM', readers, unpack(over)) or 0
  else
    done = redis.pcall('DEL', readers)
  end
  if type(done) ~= 'table' then done = redis.pcall('ZADD', readers, whole(now + ms), owner) end
  if type(done) == 'table' then return done end
  local failed
  if lock.held then
    failed = outlive(key, ms)
  else
    done = redis.pcall('SET', key, 'quorlock:readers', 'PX', whole(ms))
    if done.err then failed = done end
  end
  failed = failed or outlive(readers, ms)
  if failed then
    redis.pcall('ZREM', readers, owner)
    return failed
  end
  if lock.place then
    --@ from queue: queue_remove
    --@ from intents: intents_of
    queue_remove(intents_of(key), lock.request.waiter)
  end
  -- Nobody publishes that a writer's lease ended.
  if is_first and lock.request.since then
    --@ from intents: intents_of, last_reader
    if last_reader(intents_of(key)) then redis.pcall('PUBLISH', notice_channel(key), owner) end
  end
end

-- settle_readers - let the sentinel, which is there, and the set expire with the last reader, and delete them if there
-- is none. But while readers whose turn it is have not come yet, the sentinel stays for them. Return nil, or an error.
-- Rules 8.2 and 8.5.
local function settle_readers(lock)
  local key, now, till = lock.key, lock.request.now, 0
  local readers = readers_of(key)
  local last = redis.pcall('ZRANGE', readers, '-1', '-1', 'WITHSCORES')
  if last.err then return last end
  if last[2] then till = tonumber(last[2]) end
  local read_till = till
  if till <= now then till = now + turn_left(key, lock.request.us) end
  local done
  if till > now then
    done = redis.pcall('PEXPIRE', key, whole(till - now))
    -- The reader that released may have had a longer lease; the entries of others need not stay that long. If all have
    -- expired this deletes the set.
    if type(done) ~= 'table' then done = redis.pcall('PEXPIRE', readers, whole(read_till - now)) end
  else
    done = redis.pcall('DEL', key, readers)
    lock.held = nil
  end
  if type(done) == 'table' then return done end
end

-- shared_clear - delete a lock that is ours; return nil, or an error. A reader loses its own entry only. Rule 8.3.
local function shared_clear(lock, owner)
  local done
  if lock.shared then
    done = redis.pcall('ZREM', readers_of(lock.key), owner)
    if type(done) ~= 'table' then return settle_readers(lock) end
  else
    done = redis.pcall('DEL', lock.key)
  end
  if type(done) == 'table' then return done end
end

-- shared_channel - return the channel of the lock's waiters.
local function shared_channel(lock)
  return notice_channel(lock.key)
end

-- shared_notice - notify the lock's waiters unless `how` is silent, and return their number. While the key has readers,
-- or is reserved for some, nobody is notified.
local function shared_notice(lock, owner, how)
  if not lock.shared then return notice_released(lock.key, owner, how) end
  if how == 'silent' or lock.held then return 0 end
  local sent = redis.pcall('PUBLISH', notice_channel(lock.key), owner)
  return type(sent) == 'number' and sent or 0
end
