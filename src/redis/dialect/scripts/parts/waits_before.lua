-- SPDX-License-Identifier: BSD-3-Clause
-- waits_before returns the writer that has waited for the key longer than we have, and how long it will be remembered;
-- nil if there is none, or it is our turn. Our entries are collected in own_intents. We have waited since the earliest
-- of them at any of the keys: otherwise each of two lists with crossed modes could come after the other. If two began
-- in the same millisecond their names decide.
-- Nodes hear of the two at different times, so each of two lists of both modes may be first at one node, and they would
-- block each other for ever. For such lists the waits are counted in spans of an eighth of the longer wait, 256 ms at
-- most, and the names decide if both counts are equal. Only for moments can a boundary between two spans separate them,
-- and nobody who comes later overtakes them.
local own_intents, all_intents, turns, since = {}, {}, {}, now - waited_ms
local mixed = string.find(ARGV[#ARGV], 's', 1, true) and string.find(ARGV[#ARGV], 'x', 1, true)
local function see_intents()
  for i = 1, tonumber(ARGV[1]) do
    local key, ours = KEYS[i], {}
    local intents = redis.pcall('ZRANGEBYSCORE', intents_of(key), '(' .. whole(now), '+inf', 'WITHSCORES')
    for k = 1, #intents, 2 do
      local letter, at, name = string.match(intents[k], '^(%l):(%d+):(.*)$')
      if name == waiter then
        ours[#ours + 1], since, turns[key] = intents[k], math.min(since, tonumber(at)), turns[key] or letter == 't'
      end
    end
    all_intents[key], own_intents[key] = intents, ours
  end
end
local function is_older(at, name, both_mixed)
  local theirs, ours, span = now - at, now - since, 1
  while both_mixed and span < 256 and span * 8 <= math.max(theirs, ours) do span = span * 2 end
  theirs, ours = math.floor(theirs / span), math.floor(ours / span)
  return theirs > ours or theirs == ours and name < waiter
end
local function waits_before(key)
  if not all_intents[key] then see_intents() end
  if turns[key] then return nil end
  local intents, before, ttl = all_intents[key], nil, nil
  for i = 1, #intents, 2 do
    local letter, at, name = string.match(intents[i], '^([wm]):(%d+):(.*)$')
    if at and name ~= waiter and is_older(tonumber(at), name, mixed and letter == 'm') then
      local left = tonumber(intents[i + 1]) - now
      if not ttl or left > ttl then before, ttl = name, left end
    end
  end
  return before and 'quorlock:waits:' .. before, ttl
end
