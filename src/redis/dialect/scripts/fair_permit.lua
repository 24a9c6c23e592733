-- SPDX-License-Identifier: BSD-3-Clause
-- As permit.lua acquires any slot, at the arbiter of a fair lock: the free slots belong to those of the queue that came
-- first.
-- KEYS and ARGV as there. ARGV from 13 on: the waiter's name, for how many us it has waited, for how many ms it stays in
-- the queue without another request (0: it does not queue; far behind it stays longer)
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
--@ queue_clock
--@ queue
local owner, lease_ms, permits, how, any, passed = ARGV[2], ARGV[4], ARGV[8], ARGV[9], true, ARGV[11]
local why = guard_broken(ARGV[5])
local us, no_clock = clock_us()
if not us then return no_clock end
local queue, waiter, least_ms = queue_of(name), ARGV[13], tonumber(ARGV[15])
local exists, no_queue = queue_exists(queue)
if no_queue then return no_queue end
local place, before, place_us, life_ms = nil, 0, nil, nil
if exists then
  place_us, life_ms = queue_clock(us)
  queue_tidy(queue, waiter, life_ms, notice_channel(name))
  place = queue_place(queue, 'w', waiter) or queue_place_of(place_us, tonumber(ARGV[14]))
  before = queue_before(queue, place, false)
end
local free, ours = 0, false
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
if reply[1] == 1 then
  if exists then queue_remove(queue, waiter) end
  return reply
end
if waits and free > 0 then
  local first, left = queue_first(queue, place, life_ms, false)
  reply[1], reply[2] = 'quorlock:waits:' .. first, left
end
if least_ms > 0 then
  if not place_us then place_us, life_ms = queue_clock(us) end
  place = place or queue_place_of(place_us, tonumber(ARGV[14]))
  why = queue_stay(queue, 'w', waiter, place, life_ms + queue_life(least_ms, before))
  if why then return why end
end
reply[6] = 1 + math.max(before - free, 0)
reply[7] = math.min(before, reply[6])
return reply
