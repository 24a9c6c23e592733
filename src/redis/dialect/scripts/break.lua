-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock
-- Returns 0 if there was nothing; else {holder, ttl, type [, others]} of what was deleted, with others as in
-- parts/others.lua. The holder is nil if the key held no string. The type is none if there was no key, but slots of the
-- name were held.
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
-- Delete its readers and the waiting clients, too. A user may lack the right to these keys if no readers are broken.
redis.pcall('DEL', 'quorlock:readers:' .. KEYS[1], 'quorlock:intents:' .. KEYS[1])
redis.pcall('DEL', 'quorlock:queue:' .. KEYS[1])
notice_released(KEYS[1], holder or '')
-- One of the deleted keys is the number of permits; any other was in the place of a slot, whatever its type.
if kind == 'none' and slots == 0 and not (type(done) == 'number' and done > 1) then return 0 end
if others == '' then return {holder, ttl, kind} end
return {holder, ttl, kind, others}
