-- SPDX-License-Identifier: BSD-3-Clause
-- As acquire.lua, at the arbiter of a fair lock: others that came earlier and still wait come first.
-- ARGV from 9 on: the waiter's name, for how many us it has waited, for how many ms it stays in the queue without
-- another request (0: it does not queue), the modes as in shared_keys.lua
-- A refusal has two parts more, {holder, ttl, n, which, turns, before}: after so many releases it may be our turn; so
-- many turns of others come before ours. Readers that follow each other in the queue have one turn together. If only
-- waiting clients refuse, the holder is 'quorlock:waits:NAME' with the first of them, and ttl says when all of them are
-- forgotten.
local ARGV = {ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[7], ARGV[5], ARGV[6], ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12]}
--@ get
--@ guarded
--@ shared_keys
local waiter, waited_ms = ARGV[9], math.floor(tonumber(ARGV[10]) / 1000)
--@ waits_before
--@ shared_whose
local owner = ARGV[2]
--@ shared_lift
--@ shared_set
--@ shared_clear
--@ shared_notice
--@ look
--@ queue
local came, queues, places = clock_us() - tonumber(ARGV[10]), {}, {}
for i = 1, tonumber(ARGV[1]) do
  local line, why = queue_read(KEYS[i], now)
  if not line then return why end
  queues[KEYS[i]] = line
  for k = 1, #line, 2 do
    local at, name = string.match(line[k], '^(%d+):(.*):%a$')
    if name == waiter then came, places[KEYS[i]] = math.min(came, tonumber(at)), line[k] end
  end
end
for i = 1, tonumber(ARGV[1]) do
  local name = string.format('%016.0f:%s:', came, waiter) .. (shared[KEYS[i]] and 'r' or 'w')
  -- Without a place in this queue yet; it may have one in that of another key.
  places[KEYS[i]] = places[KEYS[i]] or name
end
local turns, before, free_or_whose = 0, 0, lock_whose
lock_whose = function(key, asker)
  local whose, ttl = free_or_whose(key, asker)
  if whose == true or type(whose) == 'table' then return whose end
  local line, last, count, first, left = queues[key], held[key] and 'w', 0, nil, 0
  if held[key] == sentinel then last = 'r' end
  if held[key] then turns = turns + 1 end
  local others, till = {}, {}
  for k = 1, #line, 2 do
    if line[k] < places[key] and not (held[key] and string.match(line[k], '%u$')) then
      others[#others + 1], till[line[k]] = line[k], tonumber(line[k + 1])
    end
  end
  table.sort(others)
  for _, other in ipairs(others) do
    local letter = string.lower(string.sub(other, -1))
    if letter == 'w' or last ~= 'r' then count = count + 1 end
    last, first, left = letter, first or string.match(other, '^%d+:(.*):%a$'), math.max(left, till[other] - now)
  end
  if count > 0 and shared[key] and last == 'r' then count = count - 1 end
  turns, before = turns + count, before + count
  if whose or count == 0 then return whose, ttl end
  return 'quorlock:waits:' .. first, left
end
local function attempt()
  --@ acquire
end
local reply = attempt()
if reply.err then return reply end
local life_ms = tonumber(ARGV[11])
for i = 1, tonumber(ARGV[1]) do
  local queue, place = queue_of(KEYS[i]), places[KEYS[i]]
  local granted = string.gsub(place, '%a$', string.upper)
  if reply[1] == 1 then
    local till = redis.pcall('ZSCORE', queue, place)
    if type(till) == 'string' then
      redis.pcall('ZREM', queue, place)
      redis.pcall('ZADD', queue, till, granted)
    end
  elseif life_ms > 0 then
    if place == granted then redis.pcall('ZREM', queue, place) end
    place = string.gsub(place, '%a$', string.lower)
    local done = redis.pcall('ZADD', queue, whole(now + life_ms), place)
    if type(done) ~= 'table' then done = outlive(queue, life_ms) end
    if type(done) == 'table' then return done end
  end
end
if reply[1] ~= 1 then reply[4], reply[5], reply[6] = reply[4] or '', turns, before end
return reply
