-- SPDX-License-Identifier: BSD-3-Clause
-- Queues of waiting clients: quorlock:queue:KEY of a fair lock, and quorlock:intents:KEY of clients that want the key
-- shared or exclusively while others have it in the other mode. Each is a sorted set with two members for a client, so
-- that those before a client are counted, and the first of them is found, without reading the others (rule 9.4):
--   LETTER NAME  its place: when it came, in us of the queues' clock, and 10^14. Letters: w writer, r reader, m a list
--                of keys in both modes. The places of readers are higher by 2^52, so they are behind all writers.
--                A capital letter, with the place below 0: the client has this node's yes. It counts again if that
--                is taken back, because the attempt failed at other nodes.
--   = NAME       with permits: the slot for which it has this yes, counted from -1 downwards
--   ~ NAME       when it is forgotten, in ms of that clock, which is less than 10^14
-- What another version has written here is no client. No lock's safety depends on a queue.
--@ from names: name_of, name_for_all

-- whole - return all digits of a whole number.
local function whole(number)
  return string.format('%.0f', number)
end

-- queue_clock - return the clock of the queues, in us for places and in ms for expiries, and whether clients shall ask
-- again soon. quorlock:clock keeps it for all keys with the same prefix: 'QUIET REAL PLACE LIFE', each in us. REAL is
-- the server's clock when PLACE and LIFE were made. Neither of them ever goes back, so a step of the server's clock
-- changes no order. LIFE goes forward by 0.9 s at most from one request to the next: after a step forward each client
-- that is alive asks again before it is forgotten, and a dead one is forgotten after two requests of others. QUIET is
-- when LIFE lost time by that. If it was in the last 5 s, most of those that are remembered may be dead, and are
-- forgotten in time only if the others ask; so it goes on while they ask seldom. With reads_only the clock is not
-- stored, and both go forward by all that has passed. Rule 9.8.
local function queue_clock(real_us, reads_only)
  local place, life, most = real_us, real_us, 4000000000000000 -- us: below 2^52, with room for waits
  local quiet, clock = place, name_for_all('quorlock:clock')
  local kept = redis.pcall('GET', clock)
  local last_quiet, last, last_place, last_life
  if type(kept) == 'string' then
    last_quiet, last, last_place, last_life = string.match(kept, '^(%d+) (%d+) (%d+) (%d+)$')
  end
  if last then
    local passed = math.max(real_us - tonumber(last), 1)
    place = math.min(tonumber(last_place) + passed, most)
    quiet = tonumber(last_quiet)
    if passed > (place - quiet < 5000000 and 450000 or 900000) then quiet = place end
    if not reads_only then passed = math.min(passed, 900000) end
    life = math.min(tonumber(last_life) + passed, most)
  end
  if not reads_only then
    redis.pcall('SET', clock, string.format('%.0f %.0f %.0f %.0f', quiet, real_us, place, life), 'PX', '1200000')
  end
  return place, math.floor(life / 1000), place - quiet < 5000000
end

-- queue_of - return the queue of a fair lock at the key.
local function queue_of(key)
  return name_of('quorlock:queue:', key)
end

-- queue_exists - return whether there is anybody; nil and an error, which names a queue of another type.
local function queue_exists(queue)
  local count = redis.pcall('ZCOUNT', queue, '-inf', '+inf')
  if type(count) == 'table' then
    --@ from errors: foreign, foreign_named
    return nil, foreign_named(queue, foreign(queue, count))
  end
  return count > 0
end

-- queue_high - return by how much the places of clients with this letter are higher than those of writers.
local function queue_high(letter)
  return letter == 'r' and 4503599627370496 or 0
end

-- queue_bounds - return the lowest place of clients with this letter; and the first one that does not come before that
-- place of a writer, or, without a place, that is of no such client.
local function queue_bounds(letter, place)
  local high = queue_high(letter)
  return 100000000000000 + high, (place or 4503599627370496) + high
end

-- queue_since - return the place of one that came so many us ago, as of a writer. Rule 9.3.
local function queue_since(place_us, waited_us)
  return 100000000000000 + math.max(place_us - waited_us, 0)
end

-- queue_place - return the client's place, as of a writer, and whether it has this node's yes; nil if it has no place.
local function queue_place(queue, letter, name)
  local high = queue_high(letter)
  local score = redis.pcall('ZSCORE', queue, letter .. name)
  if type(score) == 'string' then return tonumber(score) - high, false end
  score = redis.pcall('ZSCORE', queue, string.upper(letter) .. name)
  if type(score) == 'string' then return -tonumber(score) - high, true end
end

-- queue_left - return for how many ms the client is still remembered.
local function queue_left(queue, name, life_ms)
  local till = redis.pcall('ZSCORE', queue, '~' .. name)
  return type(till) == 'string' and math.max(tonumber(till) - life_ms, 0) or 0
end

-- queue_remove - take a client out. Return whether others waited for it, and not for its release.
local function queue_remove(queue, name)
  local waited = redis.pcall('ZREM', queue, 'w' .. name, 'r' .. name, 'm' .. name)
  redis.pcall('ZREM', queue, '~' .. name, 'W' .. name, 'R' .. name, '=' .. name)
  return type(waited) == 'number' and waited > 0
end

-- queue_moved - a place among the writers is free: tell the client that has 10 others before it now to ask. It came
-- near, and does not listen to the key's channel yet. `key`: nil for intents, which nobody waits for in this way.
-- Rule 9.5.
local function queue_moved(queue, key)
  if not key then return end
  local from, to = queue_bounds('w')
  local near = redis.pcall('ZRANGEBYSCORE', queue, whole(from), '(' .. whole(to), 'LIMIT', '10', '1')
  if near[1] then
    redis.pcall('PUBLISH', name_of('quorlock:released:quorlock:turn:' .. string.sub(near[1], 2) .. ':', key), '')
  end
end

-- queue_tidy - forget clients whose time is over, a few at each request, and notify those behind. The first writer and
-- the first reader have 2 s from now on, unless they ask: a client that died far behind must not be waited for longer.
-- Return whether there may be more to forget. `key` as in queue_moved. Rule 9.4.
local function queue_tidy(queue, name, life_ms, channel, key)
  local over = redis.pcall('ZRANGEBYSCORE', queue, '0', whole(life_ms), 'LIMIT', '0', '16')
  for _, member in ipairs(over) do
    if string.sub(member, 1, 1) == '~' then
      local gone = string.sub(member, 2)
      if queue_remove(queue, gone) then
        redis.pcall('PUBLISH', channel, gone)
        queue_moved(queue, key)
      end
    else
      redis.pcall('ZREM', queue, member)
    end
  end
  for _, letter in ipairs({'w', 'r'}) do
    local from, to = queue_bounds(letter)
    local first = redis.pcall('ZRANGEBYSCORE', queue, whole(from), '(' .. whole(to), 'LIMIT', '0', '1')
    local other = first[1] and string.sub(first[1], 2)
    if other and other ~= name then
      local till = redis.pcall('ZSCORE', queue, '~' .. other)
      if type(till) ~= 'string' then
        redis.pcall('ZREM', queue, first[1])
      elseif tonumber(till) > life_ms + 2000 then
        redis.pcall('ZADD', queue, whole(life_ms + 2000), '~' .. other)
      end
    end
  end
  return #over == 16
end

-- queue_soon - return the number, but no more than that where the client shall ask again soon: because the clock says so,
-- or because there are more to forget. Rule 9.4.
local function queue_soon(number, most, hurries)
  return hurries and math.min(number, most) or number
end

-- queue_before - return how many writers and how many readers came before that place, with those that have this node's
-- yes or without. Rule 9.4.
local function queue_before(queue, place, with_yes)
  local function count(from, to)
    local n = redis.pcall('ZCOUNT', queue, from, to)
    return type(n) == 'number' and n or 0
  end
  local counts = {}
  for i, letter in ipairs({'w', 'r'}) do
    local from, to = queue_bounds(letter, place)
    counts[i] = count(whole(from), '(' .. whole(to))
    if with_yes then counts[i] = counts[i] + count('(' .. whole(-to), whole(-from)) end
  end
  return counts[1], counts[2]
end

-- queue_first - return the name of the first of these, and how many ms it is remembered for.
local function queue_first(queue, place, life_ms, with_readers)
  local first, first_at
  for i, letter in ipairs({'w', 'r'}) do
    local from, to = queue_bounds(letter, place)
    local found = redis.pcall('ZRANGEBYSCORE', queue, whole(from), '(' .. whole(to), 'WITHSCORES', 'LIMIT', '0', '1')
    if not found[1] then
      found = redis.pcall('ZRANGEBYSCORE', queue, '(' .. whole(-to), whole(-from), 'WITHSCORES', 'LIMIT', '0', '1')
    end
    local at = found[1] and math.abs(tonumber(found[2])) - queue_high(letter)
    if at and (i == 1 or with_readers) and (not first or at < first_at) then first, first_at = found[1], at end
  end
  if not first then return '', 0 end
  first = string.sub(first, 2)
  return first, queue_left(queue, first, life_ms)
end

-- queue_life - return for how many ms a client is remembered: twice as long as it waits before it asks again. Rules
-- 6.15 and 9.4.
local function queue_life(least_ms, before)
  return math.min(math.max(least_ms, 200 * before), 600000)
end

-- queue_stay - put a client into the queue, or let it stay there; return nil, or an error. The queue lives longer than
-- any client is remembered.
local function queue_stay(queue, letter, name, place, till_ms)
  local score = whole(place + queue_high(letter))
  local done = redis.pcall('ZADD', queue, score, letter .. name, whole(till_ms), '~' .. name)
  if type(done) ~= 'table' then done = redis.pcall('PEXPIRE', queue, '1200000') end
  if type(done) == 'table' then return done end
end

-- queue_mark - mark that a client of the queue has this node's yes, and remember it until then; nil: no longer than
-- before. It may get a yes each time it asks, and fail at other nodes. Rules 9.3 and 9.4.
local function queue_mark(queue, key, letter, name, place, till_ms)
  local score = whole(-place - queue_high(letter))
  if redis.pcall('ZREM', queue, letter .. name) == 1 then queue_moved(queue, key) end
  redis.pcall('ZADD', queue, score, string.upper(letter) .. name)
  if till_ms then redis.pcall('ZADD', queue, whole(till_ms), '~' .. name) end
end

-- queue_mark_slot - the same for a slot.
local function queue_mark_slot(queue, key, name, place, till_ms, slot)
  queue_mark(queue, key, 'w', name, place, till_ms)
  redis.pcall('ZADD', queue, whole(-1 - slot), '=' .. name)
end

-- queue_unmark_slots - let those wait again whose slot is free: their attempt failed at other nodes. is_free: of each
-- slot, from 1 on. Rule 9.3.
local function queue_unmark_slots(queue, is_free)
  local marked = redis.pcall('ZRANGEBYSCORE', queue, '-64', '-1', 'WITHSCORES')
  for i = 1, #marked, 2 do
    local name = string.sub(marked[i], 2)
    if is_free[-tonumber(marked[i + 1])] then
      local place, has_yes = queue_place(queue, 'w', name)
      redis.pcall('ZREM', queue, 'W' .. name, marked[i])
      if has_yes then redis.pcall('ZADD', queue, whole(place), 'w' .. name) end
    end
  end
end
