-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks
-- ARGV n, the waiter's name, how many us it has waited, how many ms to remember it (0: it waits no more; far behind it is
-- remembered for longer), the modes
-- Remembers a writer where readers block it, and a reader where a writer does. A list of both modes is remembered only
-- as a writer: otherwise two such lists could each have a key reserved that the other needs. That is done at each node,
-- whoever holds the keys: younger lists that come and go at other keys would otherwise overtake it at a different node
-- each time. Returns 1 and how many of the same mode are remembered that came before.
--@ shared_keys
--@ string_channel
--@ queue_clock
--@ queue
local waiter, waited_us, least_ms = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local reads = not string.find(ARGV[5], 'x', 1, true)
--@ waits_before
--@ shared_whose
--@ shared_lift
--@ shared_clear
--@ shared_notice
local ahead = 0
local function remember(key)
  see_intents(true)
  local whose = lock_whose(key, '')
  local kept_out = type(whose) == 'string' and (reads or not shared[key] and whose == sentinel)
  local place = own_intents[key]
  if not place and (kept_out or mixed and not shared[key]) then place = since end
  if not place then return nil end
  local writers, readers = queue_before(intents_of(key), place, false)
  local before = shared[key] and readers or writers
  ahead = math.max(ahead, before)
  return queue_stay(intents_of(key), letter_of(key), waiter, place, life_ms_now + queue_life(least_ms, before))
end
-- Notify clients that waited only behind this one.
local function forget(key)
  if not queue_exists(intents_of(key)) or not queue_remove(intents_of(key), waiter) then return nil end
  local holder = redis.pcall('GET', key)
  if shared[key] and holder == sentinel then
    settle_readers(key)
    holder = redis.pcall('GET', key)
  end
  if not holder or not shared[key] and holder == sentinel then
    redis.pcall('PUBLISH', notice_channel(key), waiter)
  end
end
for i = 1, tonumber(ARGV[1]) do
  local why
  if least_ms > 0 then why = remember(KEYS[i]) else why = forget(KEYS[i]) end
  if why then return why end
end
return 1 + ahead
