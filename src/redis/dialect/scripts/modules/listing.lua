-- SPDX-License-Identifier: BSD-3-Clause
-- What is at a key, for people.
--@ from server: clock_us
--@ from queue: whole, queue_clock, queue_of, queue_bounds, queue_left
--@ from intents: intents_of
--@ from names: name_of

-- list - run one step of SCAN, and return {next cursor, locks}: a line for each lock among the keys of this step with a
-- letter (x: a key, r: readers, s: a slot, o: another value, which expires), a number (of readers; of permits), ms left,
-- the lengths of key and holder, and both. d: a key that the user may not read. {'', ''}: the reply would be too long, so
-- ask for fewer keys.
-- lock_at(key) returns letter, number and holder; nil if the key is not a lock; nil and an error.
local function list(cursor, pattern, count, kind, longest, lock_at)
  local page = redis.pcall('SCAN', cursor, 'MATCH', pattern, 'COUNT', count, 'TYPE', kind)
  if page.err then return page end
  local lines, size = {}, 0
  for _, key in ipairs(page[2]) do
    local letter, number, holder, left
    if #key <= longest then
      letter, number, holder = lock_at(key)
    end
    if letter then
      left = redis.pcall('PTTL', key)
      if type(left) == 'table' then
        letter, number = nil, left
      elseif letter == 'o' and left < 0 then
        letter, number = nil, nil
      end
    end
    if not letter and number then
      -- The first denial that is about a command, and not about this key, ends the listing.
      if not string.find(number.err, 'access', 1, true) then return number end
      letter, number, holder, left = 'd', 0, '', -2
    end
    if letter and left ~= -2 or letter == 'd' then
      local line = string.format('%s %d %.0f %d %d ', letter, number, left, #key, #holder) .. key .. holder .. '\n'
      lines[#lines + 1], size = line, size + #line
    end
  end
  if size > 200000 then return {'', ''} end
  return {page[1], table.concat(lines)}
end

-- look_around - return three things: the highest counter of these keys, or 0. The cause of the guard's quarantine as in
-- guard_text.lua, or 'client:' and the max_lease of that client, or '' without a guard. The rest of the quarantine in
-- ms, or -1. These keys are not among the request's KEYS, so that a user who may not read them can still peek.
local function look_around(keys, explains)
  local highest = 0
  for i = 1, #keys do
    local counter = keys[i] ~= 'quorlock:guard' and redis.pcall('GET', name_of('quorlock:fence:', keys[i]))
    counter = type(counter) == 'string' and string.match(counter, '^%d+$') or 0
    highest = math.max(highest, tonumber(counter))
  end
  local guard = redis.pcall('GET', 'quorlock:guard')
  local left, kept = -1, ''
  if type(guard) == 'string' then
    kept = 'unknown'
    local lease, till, longest, rest = string.match(guard, '^[12]|%d+|[^|]*|(%d+)|[^|]*|[^|]*|(%d+)|?(%d*)(.*)$')
    local time = redis.pcall('TIME')
    local moved = nil
    -- Clients that contend for the lock do not ask for this: INFO takes longer than everything else here.
    if till and explains then
      --@ from guard: guard_moved
      moved = guard_moved(guard)
    end
    if till and not time.err then
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      local cause, wanted, wanted_till = string.match(rest, '|(%a+)|(%d+)|(%d+)$')
      kept = cause or kept
      left = tonumber(till) - now
      if moved then
        -- The quarantine begins when a client that takes locks notices this.
        left = math.max(tonumber(lease), left > 0 and tonumber(longest) or 0)
        kept = 'restart'
      end
      if wanted and tonumber(wanted_till) - now > math.max(0, left) then
        left, kept = tonumber(wanted_till) - now, 'client:' .. wanted
      end
      if left <= 0 then left = -1 end
    end
  end
  return highest, kept, left
end

-- longest_held - return the holder of the lock with the longest ttl, that ttl, and what whose() returned third for it;
-- false and -2 if none is held; nil, nil, nil and an error.
local function longest_held(whose, keys)
  local holder, ttl, count = false, -2, nil
  for i = 1, #keys do
    local state, _, held = whose(keys[i])
    if type(state) == 'table' then return nil, nil, nil, state end
    local left = state and redis.call('PTTL', keys[i])
    if left and (not holder or ttl ~= -1 and (left == -1 or left > ttl)) then
      holder, ttl, count = state, left, held
    end
  end
  return holder, ttl, count
end

-- count_waiters - return how many clients listen on the channel; -1 if the user may not ask.
local function count_waiters(channel)
  local heard = redis.pcall('PUBSUB', 'NUMSUB', channel)
  return heard.err and -1 or heard[2]
end

-- waiting_in - return up to 256 clients that wait in a queue (queue.lua), in their order.
local function waiting_in(queue, life_ms)
  local found = {}
  for _, kind in ipairs({'w', 'r'}) do
    local from, to = queue_bounds(kind)
    local last = kind == 'r' and '+inf' or '(' .. whole(to)
    local members = redis.pcall('ZRANGEBYSCORE', queue, whole(from), last, 'WITHSCORES', 'LIMIT', '0', '256')
    for i = 1, #members, 2 do
      local letter, name = string.match(members[i], '^([wmr])(.*)$')
      local left = name and queue_left(queue, name, life_ms) or 0
      if left > 0 then found[#found + 1] = {letter = letter, name = name, left = left, at = members[i + 1] - from} end
    end
  end
  table.sort(found, function(one, other) return one.at < other.at end)
  for i = #found, 257, -1 do found[i] = nil end
  return found
end

-- list_others - return who has a part in a name beside the holder of its key, and how many slots are held. One line
-- each: kind, number, fencing counter, ms left, length of the rest, the rest. Kinds: p: the name has that number of
-- permits; s: the slot of that number, and its holder; r: a reader; w: a waiting writer; q: a reader that waits, or
-- whose turn it is. The number of one that waits is its place in the queue of a fair lock, or 0. At most 256 readers,
-- 256 of the queue and 256 other waiting clients are listed. It uses pcall, so that a user who may read only the key
-- sees that at least.
local function list_others(key, permits)
  local lines, slots, held, most = {}, {}, 0, 9007199254740992 -- of whole numbers, 2^53
  local function add(kind, number, counter, left, name)
    name = string.sub(name, 1, 256)
    lines[#lines + 1] = string.format('%s %d %s %.0f %d %s\n', kind, number, counter, left, #name, name)
  end
  local kept = redis.pcall('GET', name_of('quorlock:permits:', key))
  if type(kept) == 'string' and string.match(kept, '^%d%d?$') then
    add('p', tonumber(kept), '0', 0, '')
    permits = math.max(permits, math.min(tonumber(kept), 64))
  end
  for slot = 1, permits do slots[slot] = name_of('quorlock:slot:' .. (slot - 1) .. ':', key) end
  local holders = permits > 0 and redis.pcall('MGET', unpack(slots)) or {}
  for slot = 1, permits do
    local left = holders[slot] and redis.pcall('PTTL', slots[slot])
    if type(left) == 'number' then
      local counter = redis.pcall('GET', name_of('quorlock:fence:', slots[slot]))
      counter = type(counter) == 'string' and #counter < 17 and string.match(counter, '^%d+$') or '0'
      if tonumber(counter) >= most then counter = '0' end
      add('s', slot - 1, counter, left, holders[slot])
      held = held + 1
    end
  end
  local now_us = clock_us()
  if not now_us then return table.concat(lines), held end
  -- Readers count only while the sentinel exists.
  local readers = redis.pcall('GET', key) == 'quorlock:readers' and
    redis.pcall('ZRANGE', name_of('quorlock:readers:', key), '-256', '-1', 'WITHSCORES') or {}
  for i = 1, #readers, 2 do
    local left = math.min(tonumber(readers[i + 1]) - math.floor(now_us / 1000), most) -- of a score that is inf, too
    if left > 0 then add('r', 0, '0', left, readers[i]) end
  end
  local _, life_ms = queue_clock(now_us, true)
  -- The queue of a fair lock is before the intents, because a client may be in both.
  for i, queue in ipairs({queue_of(key), intents_of(key)}) do
    for place, waiter in ipairs(waiting_in(queue, life_ms)) do
      add(waiter.letter == 'r' and 'q' or 'w', i == 1 and place or 0, '0', math.min(waiter.left, most), waiter.name)
    end
  end
  return table.concat(lines), held
end
