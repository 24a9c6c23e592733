-- SPDX-License-Identifier: BSD-3-Clause
-- Returns who has a part in a name beside the holder of its key, and how many slots are held. One line each: kind,
-- number, fencing counter, ms left, length of the rest, the rest. Kinds: p: the name has that number of permits; s: the
-- slot of that number, and its holder; r: a reader; w: a waiting writer; q: a reader that waits, or whose turn it is. The
-- number of one that waits is its place in the queue of a fair lock, or 0. At most 256 readers, 256 of the queue and 256
-- other waiting clients are listed. It uses pcall, so that a user who may read only the key sees that at least.
--@ queue_clock
-- Returns up to 256 clients that wait in a queue (queue.lua), in their order.
local function waiting_in(queue, life_ms)
  local found = {}
  for _, high in ipairs({0, 4503599627370496}) do
    local from, to = string.format('%.0f', 1e14 + high), high == 0 and '(4503599627370496' or '+inf'
    local members = redis.pcall('ZRANGEBYSCORE', queue, from, to, 'WITHSCORES', 'LIMIT', '0', '256')
    for i = 1, #members, 2 do
      local letter, name = string.match(members[i], '^([wmr])(.*)$')
      local till = name and redis.pcall('ZSCORE', queue, '~' .. name)
      local left = type(till) == 'string' and tonumber(till) - life_ms or 0
      if left > 0 then found[#found + 1] = {letter = letter, name = name, left = left, at = members[i + 1] - high} end
    end
  end
  table.sort(found, function(one, other) return one.at < other.at end)
  for i = #found, 257, -1 do found[i] = nil end
  return found
end
local function list_others(key, permits)
  local lines, slots, held, most = {}, {}, 0, 9007199254740992 -- of whole numbers, 2^53
  local function add(kind, number, counter, left, name)
    name = string.sub(name, 1, 256)
    lines[#lines + 1] = string.format('%s %d %s %.0f %d %s\n', kind, number, counter, left, #name, name)
  end
  local kept = redis.pcall('GET', 'quorlock:permits:' .. key)
  if type(kept) == 'string' and string.match(kept, '^%d%d?$') then
    add('p', tonumber(kept), '0', 0, '')
    permits = math.max(permits, math.min(tonumber(kept), 64))
  end
  for slot = 1, permits do slots[slot] = 'quorlock:slot:' .. (slot - 1) .. ':' .. key end
  local holders = permits > 0 and redis.pcall('MGET', unpack(slots)) or {}
  for slot = 1, permits do
    local left = holders[slot] and redis.pcall('PTTL', slots[slot])
    if type(left) == 'number' then
      local counter = redis.pcall('GET', 'quorlock:fence:' .. slots[slot])
      counter = type(counter) == 'string' and #counter < 17 and string.match(counter, '^%d+$') or '0'
      if tonumber(counter) >= most then counter = '0' end
      add('s', slot - 1, counter, left, holders[slot])
      held = held + 1
    end
  end
  local time = redis.pcall('TIME')
  if time.err then return table.concat(lines), held end
  local now_us = time[1] * 1000000 + time[2]
  -- Readers count only while the sentinel exists.
  local readers = redis.pcall('GET', key) == 'quorlock:readers' and
    redis.pcall('ZRANGE', 'quorlock:readers:' .. key, '-256', '-1', 'WITHSCORES') or {}
  for i = 1, #readers, 2 do
    local left = math.min(tonumber(readers[i + 1]) - math.floor(now_us / 1000), most) -- of a score that is inf, too
    if left > 0 then add('r', 0, '0', left, readers[i]) end
  end
  local _, life_ms = queue_clock(now_us, true)
  -- The queue of a fair lock is before the intents, because a client may be in both.
  for i, queue in ipairs({'quorlock:queue:' .. key, 'quorlock:intents:' .. key}) do
    for place, waiter in ipairs(waiting_in(queue, life_ms)) do
      add(waiter.letter == 'r' and 'q' or 'w', i == 1 and place or 0, '0', math.min(waiter.left, most), waiter.name)
    end
  end
  return table.concat(lines), held
end
