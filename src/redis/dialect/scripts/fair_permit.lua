-- SPDX-License-Identifier: BSD-3-Clause
-- As permit.lua acquires any slot, at the arbiter of a fair lock: the free slots belong to those of the queue that came
-- first.
-- KEYS and ARGV as there. ARGV from 13 on: the waiter's name, for how many us it has waited, for how many ms it stays in
-- the queue without another request (0: it does not queue)
-- A refusal has two parts more, {holder, ttl, n, free, first, turns, before}, as in fair_acquire.lua. If a slot is free,
-- and only waiting clients refuse, they are named as there.
local ARGV = {2, ARGV[2], ARGV[9], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[10], ARGV[7], ARGV[11], ARGV[12], ARGV[8], ARGV[13], ARGV[14], ARGV[15]}
--@ get
--@ guarded
--@ clock
--@ string_whose
--@ string_set
--@ string_channel
--@ lift
--@ slot
--@ queue
local owner, lease_ms, permits, how, any, passed = ARGV[2], ARGV[4], ARGV[8], ARGV[9], true, ARGV[11]
local why = guard_broken(ARGV[5])
local us, no_clock = clock_us()
if not us then return no_clock end
local line, no_queue = queue_read(name, math.floor(us / 1000))
if not line then return no_queue end
local came, place = us - tonumber(ARGV[14]), nil
for k = 1, #line, 2 do
  if string.match(line[k], '^%d+:(.*):%l$') == ARGV[13] then place = line[k] end
end
place = place or string.format('%016.0f:%s:w', came, ARGV[13])
local before, first, left, free, ours = 0, nil, 0, 0, false
for k = 1, #line, 2 do
  if line[k] < place then
    before, left = before + 1, math.max(left, line[k + 1] - math.floor(us / 1000))
    if not first or line[k] < first then first = line[k] end
  end
end
for at = 0, permits - 1 do
  local whose = lock_whose(slot_key(at), owner)
  ours = ours or whose == true
  if not whose and string.sub(passed, at + 1, at + 1) ~= '1' then free = free + 1 end
end
local waits = before >= free and not ours
if waits then passed = string.rep('1', permits) end
local function attempt()
  --@ permit_acquire
end
local reply = attempt()
if reply.err then return reply end
local queue = queue_of(name)
if reply[1] == 1 then
  redis.pcall('ZREM', queue, place)
  return reply
end
if waits and free > 0 then reply[1], reply[2] = 'quorlock:waits:' .. string.match(first, '^%d+:(.*):%l$'), left end
if ARGV[15] ~= '0' then
  local till = math.floor(us / 1000) + tonumber(ARGV[15])
  local done = redis.pcall('ZADD', queue, string.format('%.0f', till), place)
  if type(done) ~= 'table' then done = lock_lift(queue, ARGV[15]) end
  if type(done) == 'table' then return done end
end
reply[6] = 1 + math.max(before - free, 0)
reply[7] = math.min(before, reply[6])
return reply
