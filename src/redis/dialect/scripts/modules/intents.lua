-- SPDX-License-Identifier: BSD-3-Clause
-- Clients that wait for a shared lock, in queues of their own (queue.lua). No grant depends on them. Rules 8.4 to 8.6.
-- `lock` and `request` are of shared.lua.
--@ from queue: whole, queue_clock, queue_exists, queue_high, queue_bounds, queue_since, queue_place, queue_left
--@ from queue: queue_tidy
--@ from string: notice_channel
--@ from names: name_of

-- intents_of - return the queue of those that wait for the key.
local function intents_of(key)
  return name_of('quorlock:intents:', key)
end

-- last_reader - return the name of the last reader that waits, and its place; nil if none waits.
local function last_reader(intents)
  local last = redis.pcall('ZRANGE', intents, '-1', '-1', 'WITHSCORES')
  if last[2] and tonumber(last[2]) >= queue_high('r') then return string.sub(last[1], 2), tonumber(last[2]) end
end

-- give_turn - give readers that the holder blocked their turn before the next writer, if any wait for the key: it is
-- reserved for them until all have come, for a second at most. The place of the last of them says who they are: the
-- member Rturn has it, below 0. This is done only if somebody was notified, because waiting clients listen. Rule 8.5.
local function give_turn(key)
  local intents = intents_of(key)
  local last, place = last_reader(intents)
  if last then
    local time = redis.pcall('TIME')
    local _, life_ms = queue_clock(time[1] * 1000000 + time[2])
    local waits = queue_left(intents, last, life_ms) > 0
    local kept = waits and redis.pcall('SET', key, 'quorlock:readers', 'NX', 'PX', '1000')
    if kept and not kept.err then
      redis.pcall('ZADD', intents, whole(-place), 'Rturn', whole(life_ms + 1000), '~turn')
    end
  end
end

-- turn_left - return for how many ms the key is still reserved for readers whose turn it is; 0 if all of them have
-- come.
local function turn_left(key, real_us)
  local intents = intents_of(key)
  local last, till = redis.pcall('ZSCORE', intents, 'Rturn'), redis.pcall('ZSCORE', intents, '~turn')
  if type(last) ~= 'string' or type(till) ~= 'string' then return 0 end
  local _, life_ms = queue_clock(real_us)
  local waiting = redis.pcall('ZCOUNT', intents, whole(queue_high('r')), whole(-tonumber(last)))
  return waiting ~= 0 and math.max(tonumber(till) - life_ms, 0) or 0
end

-- read_queue_clock - let the request have the clock of the queues, once: place_us, life_ms and whether it hurries, see
-- queue_soon(). Rule 9.8.
local function read_queue_clock(request)
  if not request.place_us then request.place_us, request.life_ms, request.hurries = queue_clock(request.us) end
end

-- see_intents - find out since when the request waits, once, and only if anybody waits for one of its keys, or even if
-- none does. It has waited since the earliest of its intents at any of the keys: otherwise each of two lists with
-- crossed modes could come after the other. A lock's letter is as in queue.lua; `turn` means that it is our turn.
local function see_intents(request, even_if_none)
  if request.since == false and not even_if_none or request.since then return end
  local any, modes = even_if_none, request.modes
  for _, lock in ipairs(request.locks) do any = any or queue_exists(intents_of(lock.key)) end
  request.since = false
  if not any then return end
  read_queue_clock(request)
  local since, life_ms = queue_since(request.place_us, request.waited_us), request.life_ms
  request.mixed = string.find(modes, 's', 1, true) and string.find(modes, 'x', 1, true)
  for _, lock in ipairs(request.locks) do
    local intents, waiter = intents_of(lock.key), request.waiter
    request.hurries = queue_tidy(intents, waiter, life_ms, notice_channel(lock.key)) or request.hurries
    lock.letter = lock.shared and 'r' or request.mixed and 'm' or 'w'
    local place = waiter ~= '' and queue_place(intents, lock.letter, waiter)
    lock.place = place
    if place then since = math.min(since, place) end
    if place and lock.shared then
      local turn = redis.pcall('ZSCORE', intents, 'Rturn')
      lock.turn = type(turn) == 'string' and queue_left(intents, 'turn', life_ms) > 0
        and -tonumber(turn) >= place + queue_high('r')
    end
  end
  request.since = since
end

-- is_older - return whether one of two lists of both modes has waited for longer than the other, which is ours. Nodes
-- hear of the two at different times, so each of them may be first at one node, and they would block each other for
-- ever. So the waits are counted in spans of an eighth of the longer wait, 256 ms at most, and the names decide if both
-- counts are equal. Only for moments can a boundary between two spans separate them, and nobody who comes later
-- overtakes them.
local function is_older(request, place, name)
  local now_place = queue_since(request.place_us, 0)
  local theirs, ours, span = math.floor((now_place - place) / 1000), math.floor((now_place - request.since) / 1000), 1
  while span < 256 and span * 8 <= math.max(theirs, ours) do span = span * 2 end
  theirs, ours = math.floor(theirs / span), math.floor(ours / span)
  return theirs > ours or theirs == ours and name < request.waiter
end

-- first_before - return the first writer that has waited for the key for longer than we have; nil if there is none. Of
-- lists of both modes the first few are compared.
local function first_before(lock)
  local request = lock.request
  local mixed, since = request.mixed, request.since
  local from, to = queue_bounds('w', not mixed and since or nil)
  local first = redis.pcall('ZRANGEBYSCORE', intents_of(lock.key), whole(from), '(' .. whole(to), 'WITHSCORES', 'LIMIT',
    '0', mixed and '8' or '2')
  for i = 1, #first, 2 do
    local name, place = string.sub(first[i], 2), tonumber(first[i + 1])
    local both = mixed and string.sub(first[i], 1, 1) == 'm'
    if name ~= request.waiter and (not both and place < since or both and is_older(request, place, name)) then
      return name
    end
  end
end

-- waits_before - return such a writer as a holder, and how long it will be remembered; nil if there is none, or it is
-- our turn. Rule 8.4.
local function waits_before(lock)
  local request = lock.request
  see_intents(request, false)
  if not request.since or lock.turn then return nil end
  local name = first_before(lock)
  if not name then return nil end
  return 'quorlock:waits:' .. name, queue_left(intents_of(lock.key), name, request.life_ms)
end
