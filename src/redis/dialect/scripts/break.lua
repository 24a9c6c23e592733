-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock
-- ARGV [owner or '' [, the prefix]]
-- Returns 0 if there was nothing; else {holder, ttl, type [, others]} of what was deleted, with others as in
-- list_others() of modules/listing.lua. The holder is nil if the key held no string. The type is none if there was no
-- key, but slots of the name were held. With an owner it deletes what that one holds only: the lock, its slots, or its
-- entry among the readers; if the lock is of another owner, it returns {holder, ttl}.
local only_owner, prefix = unpack(ARGV)
--@ from server: clock_us
--@ from string: notice_released
--@ from names: name_of
local kind = redis.pcall('TYPE', KEYS[1])
if kind.err then return kind end
kind = kind.ok
-- Deletes the keys; returns nil, or an error.
local function delete(keys)
  local done = redis.pcall('DEL', unpack(keys))
  if type(done) == 'table' then return done end
end
local function break_reader(readers, owner)
  local us, why = clock_us()
  if why then return why end
  local done = redis.pcall('ZREM', readers, owner)
  if type(done) == 'table' then return done end
  local last = redis.pcall('ZRANGE', readers, '-1', '-1', 'WITHSCORES')
  if last.err then return last end
  -- The sentinel goes with the last reader that has not expired.
  if not last[2] or tonumber(last[2]) * 1000 <= us then return delete({KEYS[1], readers}) end
end
local function break_slots(owner)
  local slots, theirs = {}, {}
  for i = 1, 64 do slots[i] = name_of('quorlock:slot:' .. (i - 1) .. ':', KEYS[1]) end
  local holders = redis.pcall('MGET', unpack(slots))
  for i = 1, #slots do
    if holders[i] == owner then theirs[#theirs + 1] = slots[i] end
  end
  if #theirs == 0 then return 0 end
  return delete(theirs)
end
local function break_owner(owner)
  if kind ~= 'string' and kind ~= 'none' then return redis.error_reply('WRONGTYPE ' .. kind) end
  local whose, ttl, why = redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]), nil
  local readers = name_of('quorlock:readers:', KEYS[1])
  if whose == owner or whose == 'quorlock:kept:' .. owner then
    why = delete({KEYS[1]})
  elseif whose == 'quorlock:readers' and type(redis.pcall('ZSCORE', readers, owner)) == 'string' then
    why = break_reader(readers, owner)
  elseif whose then
    return {string.sub(whose, 1, 4096), ttl}
  else
    why = break_slots(owner)
  end
  if why then return why end
  notice_released(KEYS[1], owner)
  return {owner, ttl, 'string'}
end
if only_owner and only_owner ~= '' then return break_owner(only_owner) end
--@ from listing: list_others
local others, slots = list_others(KEYS[1], 64)
if kind == 'none' and others == '' then return 0 end
local holder, ttl, done = false, -2, nil
if kind == 'string' then holder = string.sub(redis.call('GET', KEYS[1]), 1, 4096) end
if kind ~= 'none' then
  ttl = redis.call('PTTL', KEYS[1])
  done = redis.pcall('DEL', KEYS[1])
  if type(done) == 'table' then return done end
end
if others ~= '' then
  local parts = {name_of('quorlock:permits:', KEYS[1])}
  for slot = 0, 63 do parts[slot + 2] = name_of('quorlock:slot:' .. slot .. ':', KEYS[1]) end
  done = redis.pcall('DEL', unpack(parts))
  if slots > 0 and type(done) == 'table' then return done end
end
-- Delete its readers and the waiting clients, too. A user may lack the right to these keys if no readers are broken.
redis.pcall('DEL', name_of('quorlock:readers:', KEYS[1]), name_of('quorlock:intents:', KEYS[1]))
redis.pcall('DEL', name_of('quorlock:queue:', KEYS[1]))
notice_released(KEYS[1], holder or '')
-- One of the deleted keys is the number of permits; any other was in the place of a slot, whatever its type.
if kind == 'none' and slots == 0 and not (type(done) == 'number' and done > 1) then return 0 end
if others == '' then return {holder, ttl, kind} end
return {holder, ttl, kind, others}
