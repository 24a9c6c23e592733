-- SPDX-License-Identifier: BSD-3-Clause
-- As acquire.lua, at the arbiter of a fair lock: others that came earlier and still wait come first.
-- ARGV from 9 on: the waiter's name, for how many us it has waited, for how many ms it stays in the queue without
-- another request (0: it does not queue; far behind it stays longer), the modes as in shared_keys.lua
-- A refusal has two parts more, {holder, ttl, n, which, turns, before}: after so many releases it may be our turn; so
-- many turns of others come before ours. Readers that follow each other in the queue have one turn together. Of those
-- between writers no turn is counted, so there may be more turns than that. If only waiting clients refuse, the holder
-- is 'quorlock:waits:NAME' with the first of them, and ttl says when that one is forgotten.
local ARGV = {ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[7], ARGV[5], ARGV[6], ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12]}
--@ get
--@ guarded
--@ shared_keys
--@ string_channel
--@ queue_clock
--@ queue
local waiter, waited_us = ARGV[9], tonumber(ARGV[10])
--@ waits_before
--@ shared_whose
local owner = ARGV[2]
--@ shared_lift
--@ shared_set
--@ shared_clear
--@ shared_notice
--@ look
local n_locks, least_ms = tonumber(ARGV[1]), tonumber(ARGV[11])
local letters, places, marked, place_us, life_ms, came = {}, {}, {}, nil, nil, nil
local function read_clock()
  if place_us then return end
  place_us, life_ms = queue_clock(read_us)
  came = queue_place_of(place_us, waited_us)
end
for i = 1, n_locks do
  local key = KEYS[i]
  local exists, why_not = queue_exists(queue_of(key))
  if why_not then return why_not end
  letters[key] = shared[key] and 'r' or 'w'
  if exists then
    read_clock()
    queue_tidy(queue_of(key), waiter, life_ms, notice_channel(key))
    places[key], marked[key] = queue_place(queue_of(key), letters[key], waiter)
    came = math.min(came, places[key] or came)
  end
end
local turns, before, free_or_whose = 0, 0, lock_whose
lock_whose = function(key, asker)
  local whose, ttl = free_or_whose(key, asker)
  if whose == true or type(whose) == 'table' then return whose end
  local place, count, readers = places[key] or came, 0, 0
  if place then count, readers = queue_before(queue_of(key), place, not held[key]) end
  -- Readers join those that hold the key.
  if not shared[key] and readers > 0 and held[key] ~= sentinel then count = count + 1 end
  if held[key] then turns = turns + 1 end
  turns, before = turns + count, before + count
  if whose or count == 0 then return whose, ttl end
  local first, left = queue_first(queue_of(key), place, life_ms, not shared[key])
  return 'quorlock:waits:' .. first, left
end
local function attempt()
  --@ acquire
end
local reply = attempt()
if reply.err then return reply end
for i = 1, n_locks do
  local key, failed = KEYS[i], nil
  local queue = queue_of(key)
  if reply[1] == 1 then
    if places[key] and not marked[key] then queue_mark(queue, letters[key], waiter, places[key]) end
  elseif least_ms > 0 then
    read_clock()
    if marked[key] then redis.pcall('ZREM', queue, string.upper(letters[key]) .. waiter) end
    failed = queue_stay(queue, letters[key], waiter, places[key] or came, life_ms + queue_life(least_ms, before))
  end
  if failed then return failed end
end
if reply[1] ~= 1 then reply[4], reply[5], reply[6] = reply[4] or '', turns, before end
return reply
