-- SPDX-License-Identifier: BSD-3-Clause
-- Queues of waiting clients: quorlock:queue:KEY of a fair lock, and quorlock:intents:KEY of clients that want the key
-- shared or exclusively while others have it in the other mode. Each is a sorted set with two members for a client, so
-- that those before a client are counted, and the first of them is found, without reading the others:
--   LETTER NAME  its place: when it came, in us of the queues' clock, and 10^14. Letters: w writer, r reader, m a list of
--                keys in both modes. The places of readers are higher by 2^52, so they are behind all writers.
--                A capital letter, with the place below 0: the client has this node's yes. It counts again if that
--                is taken back, because the attempt failed at other nodes.
--   ~ NAME       when it is forgotten, in ms of that clock, which is less than 10^14
-- What another version has written here is no client. No lock's safety depends on a queue.
-- A client far behind asks seldom, so it is remembered for long. The first ones must ask again within 2 s.
local queue_first_place, queue_readers, queue_kept_ms = 100000000000000, 4503599627370496, '600000'
local function queue_of(key) return 'quorlock:queue:' .. key end
local function queue_text(number) return string.format('%.0f', number) end
-- Returns an error that names the queue if that has another type.
local function queue_error(queue, why)
  local kind = string.find(why.err, 'WRONGTYPE', 1, true) and redis.pcall('TYPE', queue)
  return kind and kind.ok and redis.error_reply('WRONGTYPE ' .. kind.ok .. ' ' .. queue) or why
end
-- Returns whether there is anybody; nil and an error.
local function queue_exists(queue)
  local count = redis.pcall('ZCOUNT', queue, '-inf', '+inf')
  if type(count) == 'table' then return nil, queue_error(queue, count) end
  return count > 0
end
-- Returns the place of one that came so many us ago.
local function queue_place_of(place_us, waited_us)
  return queue_first_place + math.max(place_us - waited_us, 0)
end
-- Returns the client's place, as of a writer, and whether it has this node's yes; nil if it has no place.
local function queue_place(queue, letter, name)
  local high = letter == 'r' and queue_readers or 0
  local score = redis.pcall('ZSCORE', queue, letter .. name)
  if type(score) == 'string' then return tonumber(score) - high, false end
  score = redis.pcall('ZSCORE', queue, string.upper(letter) .. name)
  if type(score) == 'string' then return -tonumber(score) - high, true end
end
-- Takes a client out. Returns whether others waited for it, and not for its release.
local function queue_remove(queue, name)
  local waited = redis.pcall('ZREM', queue, 'w' .. name, 'r' .. name, 'm' .. name)
  redis.pcall('ZREM', queue, '~' .. name, 'W' .. name, 'R' .. name)
  return type(waited) == 'number' and waited > 0
end
-- Forgets clients whose time is over, a few at each request, and notifies those behind. The first writer and the first
-- reader have 2 s from now on, unless they ask: a client that died far behind must not be waited for longer.
local function queue_tidy(queue, name, life_ms, channel)
  local over = redis.pcall('ZRANGEBYSCORE', queue, '0', queue_text(life_ms), 'LIMIT', '0', '16')
  for _, member in ipairs(over) do
    if string.sub(member, 1, 1) == '~' then
      local gone = string.sub(member, 2)
      if queue_remove(queue, gone) then redis.pcall('PUBLISH', channel, gone) end
    else
      redis.pcall('ZREM', queue, member)
    end
  end
  for _, from in ipairs({queue_first_place, queue_readers}) do
    local to = '(' .. queue_text(from + queue_readers - queue_first_place)
    local first = redis.pcall('ZRANGEBYSCORE', queue, queue_text(from), to, 'LIMIT', '0', '1')
    local other = first[1] and string.sub(first[1], 2)
    if other and other ~= name then
      local till = redis.pcall('ZSCORE', queue, '~' .. other)
      if type(till) ~= 'string' then
        redis.pcall('ZREM', queue, first[1])
      elseif tonumber(till) > life_ms + 2000 then
        redis.pcall('ZADD', queue, queue_text(life_ms + 2000), '~' .. other)
      end
    end
  end
end
-- Returns how many writers and how many readers came before that place, with those that have this node's yes or
-- without.
local function queue_before(queue, place, with_yes)
  local function count(from, to)
    local n = redis.pcall('ZCOUNT', queue, from, to)
    return type(n) == 'number' and n or 0
  end
  local counts = {}
  for i, high in ipairs({0, queue_readers}) do
    local from, to = queue_first_place + high, place + high
    counts[i] = count(queue_text(from), '(' .. queue_text(to))
    if with_yes then counts[i] = counts[i] + count('(' .. queue_text(-to), queue_text(-from)) end
  end
  return counts[1], counts[2]
end
-- Returns the name of the first of these, and how many ms it is remembered for.
local function queue_first(queue, place, life_ms, with_readers)
  local first, first_at
  for i, high in ipairs({0, queue_readers}) do
    local from, to = queue_first_place + high, place + high
    local found = redis.pcall('ZRANGEBYSCORE', queue, queue_text(from), '(' .. queue_text(to), 'WITHSCORES', 'LIMIT',
      '0', '1')
    if not found[1] then
      found = redis.pcall('ZRANGEBYSCORE', queue, '(' .. queue_text(-to), queue_text(-from), 'WITHSCORES', 'LIMIT',
        '0', '1')
    end
    local at = found[1] and math.abs(tonumber(found[2])) - high
    if at and (i == 1 or with_readers) and (not first or at < first_at) then first, first_at = found[1], at end
  end
  local till = first and redis.pcall('ZSCORE', queue, '~' .. string.sub(first, 2))
  if not first then return '', 0 end
  return string.sub(first, 2), math.max(type(till) == 'string' and tonumber(till) - life_ms or 0, 0)
end
-- Returns for how many ms a client is remembered: twice as long as it waits before it asks again (rule 6.15).
local function queue_life(least_ms, before)
  return math.min(math.max(least_ms, 100 * before), 120000)
end
-- Puts a client into the queue, or lets it stay there; returns nil, or an error.
local function queue_stay(queue, letter, name, place, till_ms)
  local score = queue_text(place + (letter == 'r' and queue_readers or 0))
  local done = redis.pcall('ZADD', queue, score, letter .. name, queue_text(till_ms), '~' .. name)
  if type(done) ~= 'table' then done = redis.pcall('PEXPIRE', queue, queue_kept_ms) end
  if type(done) == 'table' then return done end
end
-- Marks that a client of the queue has this node's yes.
local function queue_mark(queue, letter, name, place)
  local score = queue_text(-place - (letter == 'r' and queue_readers or 0))
  redis.pcall('ZREM', queue, letter .. name)
  redis.pcall('ZADD', queue, score, string.upper(letter) .. name)
end
