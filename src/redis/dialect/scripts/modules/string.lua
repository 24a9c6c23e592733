-- SPDX-License-Identifier: BSD-3-Clause
-- A lock that is a string at its key: the owner.
--@ from names: name_of

-- lock_whose - return the state of a lock. Nil: free; true: ours; a string: the holder; a table: an error. `holder`:
-- what GET returned; nil: it is read here.
local function lock_whose(key, owner, holder)
  if holder == nil then holder = redis.pcall('GET', key) end
  if type(holder) == 'table' then
    --@ from errors: foreign
    return foreign(key, holder)
  end
  if not holder then return nil end
  return holder == owner or string.sub(holder, 1, 4096)
end

-- lock_set - set a lock; return nil, or an error. NX, because a key of another type may have been read as missing.
local function lock_set(key, owner, lease_ms)
  local done = redis.pcall('SET', key, owner, 'NX', 'PX', lease_ms)
  if not done then
    --@ from errors: foreign
    return foreign(key, redis.pcall('GET', key))
  end
  if done.err then return done end
end

-- lock_clear - delete a lock that is ours; return nil, or an error.
local function lock_clear(key)
  local done = redis.pcall('DEL', key)
  if type(done) == 'table' then return done end
end

-- lock_keep - let a lock that is ours expire after so many ms, whenever it was to expire before, with a value that
-- tells that it is kept (rule 10.1). A server that is full refuses the value. Return nil, or an error.
local function lock_keep(key, owner, keep_ms)
  local done = redis.pcall('SET', key, 'quorlock:kept:' .. owner, 'PX', keep_ms)
  if not done.err then return nil end
  done = redis.pcall('PEXPIRE', key, keep_ms)
  if type(done) == 'table' then return done end
end

-- notice_channel - return the channel of the key's waiters.
local function notice_channel(key)
  return name_of('quorlock:released:', key)
end

-- notice_released - notify the key's waiters unless `how` is silent, and return their number. It uses pcall because the
-- script must not fail if the channel is denied to the user. `how` is nil or '' for an ordinary release: if somebody
-- was notified, readers that the holder blocked have their turn.
local function notice_released(key, owner, how)
  if how == 'silent' or how == 'keep' then return 0 end
  local sent = redis.pcall('PUBLISH', notice_channel(key), owner)
  if type(sent) ~= 'number' then return 0 end
  if sent > 0 and (not how or how == '') then
    --@ from intents: give_turn
    give_turn(key)
  end
  return sent
end
