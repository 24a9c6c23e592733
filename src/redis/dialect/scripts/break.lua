-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock
-- 0: nothing; {holder, ttl, type [, who else had a part in it]}: what was deleted. The holder is nil where the key held
-- no string; the type is none where there was no key, but the name had slots that were held.
--@ string_notice
--@ others
local kind = redis.pcall('TYPE', KEYS[1])
if kind.err then return kind end
kind = kind.ok
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
  local parts = {'quorlock:permits:' .. KEYS[1]}
  for slot = 0, 63 do parts[slot + 2] = 'quorlock:slot:' .. slot .. ':' .. KEYS[1] end
  done = redis.pcall('DEL', unpack(parts))
  if slots > 0 and type(done) == 'table' then return done end
end
-- With its readers, and those that wait. They may be denied to a user who breaks none.
redis.pcall('DEL', 'quorlock:readers:' .. KEYS[1], 'quorlock:intents:' .. KEYS[1])
notice_released(KEYS[1], holder or '')
-- One key is the number of permits; any other was in the place of a slot, whatever its type.
if kind == 'none' and slots == 0 and not (type(done) == 'number' and done > 1) then return 0 end
if others == '' then return {holder, ttl, kind} end
return {holder, ttl, kind, others}
