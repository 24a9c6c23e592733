-- SPDX-License-Identifier: BSD-3-Clause
-- waits_before returns the writer that has waited for the key longer than we have, and how long it will be remembered;
-- nil if there is none, or it is our turn. We have waited since the earliest of our intents at any of the keys: otherwise
-- each of two lists with crossed modes could come after the other.
-- Nodes hear of the two at different times, so each of two lists of both modes may be first at one node, and they would
-- block each other for ever. For such lists the waits are counted in spans of an eighth of the longer wait, 256 ms at
-- most, and the names decide if both counts are equal. Only for moments can a boundary between two spans separate them,
-- and nobody who comes later overtakes them.
local mixed = string.find(ARGV[#ARGV], 's', 1, true) and string.find(ARGV[#ARGV], 'x', 1, true)
local place_us_now, life_ms_now, since, own_intents, turns_of = nil, nil, nil, {}, {}
local function letter_of(key) return shared[key] and 'r' or mixed and 'm' or 'w' end
local function see_intents(even_if_none)
  if since == false and not even_if_none or since then return end
  local any = even_if_none
  for i = 1, tonumber(ARGV[1]) do any = any or queue_exists(intents_of(KEYS[i])) end
  since = false
  if not any then return end
  place_us_now, life_ms_now = queue_clock(read_us)
  since = queue_place_of(place_us_now, waited_us)
  for i = 1, tonumber(ARGV[1]) do
    local key, intents = KEYS[i], intents_of(KEYS[i])
    queue_tidy(intents, waiter, life_ms_now, notice_channel(key))
    local place = waiter ~= '' and queue_place(intents, letter_of(key), waiter)
    own_intents[key] = place
    if place then since = math.min(since, place) end
    if place and shared[key] then
      local turn, till = redis.pcall('ZSCORE', intents, 'Rturn'), redis.pcall('ZSCORE', intents, '~turn')
      turns_of[key] = type(turn) == 'string' and type(till) == 'string' and tonumber(till) > life_ms_now and
        -tonumber(turn) >= place + queue_readers
    end
  end
end
-- Of two lists of both modes.
local function is_older(place, name)
  local now_place = queue_first_place + place_us_now
  local theirs, ours, span = math.floor((now_place - place) / 1000), math.floor((now_place - since) / 1000), 1
  while span < 256 and span * 8 <= math.max(theirs, ours) do span = span * 2 end
  theirs, ours = math.floor(theirs / span), math.floor(ours / span)
  return theirs > ours or theirs == ours and name < waiter
end
-- Returns the first such writer. Of lists of both modes the first few are compared.
local function first_before(key)
  local from, to = queue_text(queue_first_place), '(' .. queue_text(mixed and queue_readers or since)
  local first = redis.pcall('ZRANGEBYSCORE', intents_of(key), from, to, 'WITHSCORES', 'LIMIT', '0', mixed and '8' or '2')
  for i = 1, #first, 2 do
    local name, place = string.sub(first[i], 2), tonumber(first[i + 1])
    local both = mixed and string.sub(first[i], 1, 1) == 'm'
    if name ~= waiter and (not both and place < since or both and is_older(place, name)) then return name end
  end
end
local function waits_before(key)
  see_intents(false)
  if not since or turns_of[key] then return nil end
  local name = first_before(key)
  if not name then return nil end
  local till = redis.pcall('ZSCORE', intents_of(key), '~' .. name)
  return 'quorlock:waits:' .. name, math.max(type(till) == 'string' and tonumber(till) - life_ms_now or 0, 0)
end
