-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks
-- ARGV n, the waiter's name, how many ms it has waited, how many ms to remember it (0: it waits no more), the modes
-- Remembers a writer where readers block it, and a reader where a writer does. A list of both modes is remembered only
-- as a writer: otherwise two such lists could each have a key reserved that the other needs. That is done at each node,
-- whoever holds the keys: younger lists that come and go at other keys would otherwise overtake it at a different node
-- each time. Returns 1.
--@ shared_keys
local waiter, waited_ms, life_ms = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local reads = not string.find(ARGV[5], 'x', 1, true)
--@ waits_before
--@ shared_whose
--@ shared_lift
--@ shared_clear
--@ shared_notice
local function remember(key)
  local intents, letter, mine = intents_of(key), shared[key] and 'r' or mixed and 'm' or 'w', nil
  redis.pcall('ZREMRANGEBYSCORE', intents, '-inf', whole(now))
  waits_before(key)
  for _, member in ipairs(own_intents[key]) do
    if string.sub(member, 1, 1) == letter then mine = member end
  end
  local whose = lock_whose(key, '')
  local kept_out = type(whose) == 'string' and (reads or not shared[key] and whose == sentinel)
  if not mine and (kept_out or mixed and not shared[key]) then
    mine = letter .. ':' .. whole(since) .. ':' .. waiter
  end
  if not mine then return nil end
  local done = redis.pcall('ZADD', intents, whole(now + life_ms), mine)
  return type(done) == 'table' and done or outlive(intents, life_ms)
end
-- Notify clients that waited only behind this one.
local function forget(key)
  waits_before(key)
  local gone
  for _, member in ipairs(own_intents[key]) do
    redis.pcall('ZREM', intents_of(key), member)
    gone = true
  end
  if not gone then return nil end
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
  if life_ms > 0 then why = remember(KEYS[i]) else why = forget(KEYS[i]) end
  if why then return why end
end
return 1
