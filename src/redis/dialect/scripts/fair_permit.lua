-- SPDX-License-Identifier: BSD-3-Clause
-- As permit.lua acquires any slot, at the arbiter of a fair lock: the free slots belong to those of the queue that came
-- first. Rules 9.3 and 9.7.
-- KEYS and ARGV as there. ARGV from 13 on: the waiter's name, for how many us it has waited, for how many ms it stays
-- in the queue without another request (0: it does not queue; far behind it stays longer) [, the prefix]
-- A refusal has two parts more,
-- {holder, ttl, n, free, first, turns, before}, as in fair_acquire.lua. If a slot is free, and only waiting clients
-- refuse, they are named as there.
local _, owner, lease_ms, seen, token, life_ms, how, max_lease_ms, _, permits, _, passed = unpack(ARGV)
local waiter, waited_us, least_ms, prefix = unpack(ARGV, 13)
least_ms = tonumber(least_ms)
--@ from server: clock_us
local us, why = clock_us()
if not us then return why end
--@ from names: slot_asked
--@ from slot: slot_key, slot_acquire
--@ from string: lock_whose, notice_channel
--@ from queue: queue_of, queue_clock, queue_exists, queue_since, queue_place, queue_tidy, queue_before, queue_mark_slot
--@ from queue: queue_unmark_slots
local asked, name = slot_asked(KEYS[1])
local is_free, free, ours = {}, 0, false
for at = 0, permits - 1 do
  local whose = lock_whose(slot_key(name, at), owner)
  ours = ours or whose == true
  is_free[at + 1] = not whose
  if not whose and string.sub(passed, at + 1, at + 1) ~= '1' then free = free + 1 end
end
local queue = queue_of(name)
local exists, queued, marked, place, before, place_us, queue_ms, hurries = nil, nil, false, nil, 0, nil, nil, false
exists, why = queue_exists(queue)
if why then return why end
if exists then
  place_us, queue_ms, hurries = queue_clock(us)
  hurries = queue_tidy(queue, waiter, queue_ms, notice_channel(name), name) or hurries
  queue_unmark_slots(queue, is_free)
  queued, marked = queue_place(queue, 'w', waiter)
  place = queued or queue_since(place_us, tonumber(waited_us))
  before = queue_before(queue, place, false)
end
local waits = before >= free and not ours
if waits then passed = string.rep('1', permits) end
--@ from guard: guard_refuses
local reply = guard_refuses(KEYS[3], seen, how)
  or slot_acquire(KEYS[2], name, asked, owner, lease_ms, token, life_ms, how, max_lease_ms, permits, true, passed)
if reply.err then return reply end
if reply[1] == 1 then
  if queued then queue_mark_slot(queue, name, waiter, queued, least_ms > 0 and queue_ms + least_ms, reply[4]) end
  return reply
end
--@ from queue: queue_first, queue_stay, queue_life, queue_soon
if waits and free > 0 then
  local first, left = queue_first(queue, place, queue_ms, false)
  reply[1], reply[2] = 'quorlock:waits:' .. first, queue_soon(left, 900, hurries)
end
before = queue_soon(before, 8, hurries)
if least_ms > 0 then
  if not place_us then place_us, queue_ms = queue_clock(us) end
  place = place or queue_since(place_us, tonumber(waited_us))
  if marked then redis.pcall('ZREM', queue, 'W' .. waiter, '=' .. waiter) end
  why = queue_stay(queue, 'w', waiter, place, queue_ms + queue_life(least_ms, before))
  if why then return why end
end
reply[6] = 1 + math.max(before - free, 0)
reply[7] = math.min(before, reply[6])
return reply
