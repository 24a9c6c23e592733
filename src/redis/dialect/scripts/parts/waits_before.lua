-- SPDX-License-Identifier: BSD-3-Clause
-- The writer that waits for the key for longer than we do, and how long it is remembered; nil where there is none, or
-- it is our turn. Ours are noted in own_intents. Where two began in the same millisecond their names decide, so that of
-- two lists with crossed modes one comes first.
local own_intents = {}
local function waits_before(key)
  local intents = redis.pcall('ZRANGEBYSCORE', intents_of(key), '(' .. whole(now), '+inf', 'WITHSCORES')
  local ours, since, turn = {}, now - waited_ms, false
  for i = 1, #intents, 2 do
    local letter, at, name = string.match(intents[i], '^(%l):(%d+):(.*)$')
    if name == waiter then
      ours[#ours + 1], since, turn = intents[i], math.min(since, tonumber(at)), turn or letter == 't'
    end
  end
  own_intents[key] = ours
  if turn then return nil end
  local before, ttl
  for i = 1, #intents, 2 do
    local at, name = string.match(intents[i], '^w:(%d+):(.*)$')
    at = tonumber(at)
    if at and name ~= waiter and (at < since or at == since and name < waiter) then
      local left = tonumber(intents[i + 1]) - now
      if not ttl or left > ttl then before, ttl = name, left end
    end
  end
  return before and 'quorlock:waits:' .. before, ttl
end
