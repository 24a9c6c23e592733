-- SPDX-License-Identifier: BSD-3-Clause
-- A lock of Redisson: a hash at its key, with the owner as its field and a count as the value.

-- hash_owner - return the owner in a hash, and its count; nil if there is no key; nil, nil and an error. A lock has one
-- field. If there are several, the first by name is returned, because their order differs from node to node. The hash
-- of a Redisson read-write lock has the field mode and any number of owners. Its owner is the mode; 'leftover' if no
-- owner is left; 'unread' if the user may not read the mode.
local function hash_owner(key)
  local cursor, owner, count, mode = '0', nil, nil, false
  repeat
    local part = redis.pcall('HSCAN', key, cursor)
    if part.err then return nil, nil, part end
    local fields = part[2]
    for i = 1, #fields, 2 do
      if fields[i] == 'mode' then
        mode = true
      elseif not owner or fields[i] < owner then
        owner, count = fields[i], fields[i + 1]
      end
    end
    cursor = part[1]
  until owner or cursor == '0'
  if mode or owner and redis.pcall('HEXISTS', key, 'mode') == 1 then
    mode = redis.pcall('HGET', key, 'mode')
    if type(mode) == 'table' then mode = 'unread' end
    if mode == 'read' or mode == 'write' or mode == 'unread' then
      return 'RReadWriteLock:' .. (owner and mode or 'leftover'), owner and '1' or '0'
    end
    owner, count = owner or 'mode', count or mode
  end
  return owner and string.sub(owner, 1, 4096), count
end

-- lock_whose - return the state of a lock, a hash. Nil: free; true: ours; a string: the holder, with its count as the
-- third value; a table: an error.
local function lock_whose(key, owner)
  local why = owner and redis.pcall('HEXISTS', key, owner)
  if why == 1 then return true end
  local holder, count
  if type(why) ~= 'table' then
    holder, count, why = hash_owner(key)
  end
  if why then
    --@ from errors: foreign
    return foreign(key, why)
  end
  return holder, nil, count
end

-- lock_set - set a lock; return nil, or an error. The field is set to 1 and never incremented, because the same request
-- may come twice. HSET comes first: a server that is short of memory refuses only the first write of a script, and
-- never PEXPIRE.
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

-- lock_clear - delete a lock that is ours; return nil, or an error. Redis deletes the key with its last field.
-- Rule 2.2.
local function lock_clear(key, owner)
  local done = redis.pcall('HDEL', key, owner)
  if type(done) == 'table' then return done end
end

-- notice_tagged - return the prefix and the name in braces, as Redisson does unless the name has some.
local function notice_tagged(prefix, key)
  return prefix .. (string.find(key, '{', 1, true) and key or '{' .. key .. '}')
end

-- notice_channel - return the channel of the key's waiters.
local function notice_channel(key)
  return notice_tagged('redisson_lock__channel:', key)
end

-- notice_queue - return the list of the key's waiters for a fair lock.
local function notice_queue(key)
  return notice_tagged('redisson_lock_queue:', key)
end

-- notice_released - notify the key's waiters, and return their number. It uses pcall because the script must not fail
-- if the channel is denied to the user.
--
-- 'silent' (or 'keep') is for waiters of this library, which ask again by themselves. Redisson sleeps until it is
-- notified or until the ttl of the key that refused it has passed, and that key may be this one. So a zero, which this
-- library ignores, is published even then.
--
-- Each waiter of a fair lock has a channel of its own and an entry in a list. As in Redisson, the first of the list
-- that listens is notified. The list is not changed; an entry whose channel has no listener belongs to a dead waiter.
local function notice_released(key, _, how)
  local channel = notice_channel(key)
  local sent = redis.pcall('PUBLISH', channel, (how == 'silent' or how == 'keep') and '00' or '0')
  local queue = redis.pcall('LRANGE', notice_queue(key), 0, 15)
  for i = 1, #queue do
    local heard = redis.pcall('PUBLISH', channel .. ':' .. queue[i], '0')
    if type(heard) ~= 'number' or heard > 0 then break end
  end
  return type(sent) == 'number' and sent or 0
end
