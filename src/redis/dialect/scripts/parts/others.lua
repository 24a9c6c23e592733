-- SPDX-License-Identifier: BSD-3-Clause
-- Returns who has a part in a name beside the holder of its key, and how many slots are held. One line each: kind,
-- number, fencing counter, ms left, length of the rest, the rest. Kinds: p: the name has that number of permits; s: the
-- slot of that number, and its holder; r: a reader; w: a waiting writer; q: a reader that waits, or whose turn it is. The
-- number of one that waits is its place in the queue of a fair lock, or 0. At most 256 readers, 256 of the queue and 256
-- other waiting clients are listed. It uses pcall, so that a user who may read only the key sees that at least.
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
  local time
  local function members_of(set, first)
    local members, ret = redis.pcall('ZRANGE', set .. key, first, '-1', 'WITHSCORES'), {}
    time = #members > 0 and (time or redis.pcall('TIME'))
    for i = 1, time and #time == 2 and #members or 0, 2 do
      local left = tonumber(members[i + 1]) - time[1] * 1000 - math.floor(time[2] / 1000)
      left = math.min(left, most) -- of a score that is inf, too
      if left > 0 then ret[#ret + 1] = {name = members[i], left = left} end
    end
    return ret
  end
  -- Readers count only while the sentinel exists.
  local readers = redis.pcall('GET', key) == 'quorlock:readers' and members_of('quorlock:readers:', '-256') or {}
  for _, reader in ipairs(readers) do add('r', 0, '0', reader.left, reader.name) end
  -- The queue of a fair lock (parts/queue.lua). It is before the intents, because a client may be in both.
  local queue, place = members_of('quorlock:queue:', '0'), 0
  table.sort(queue, function(one, other) return one.name < other.name end)
  for _, waiter in ipairs(queue) do
    local name, letter = string.match(waiter.name, '^%d+:(.*):([rw])$')
    if name and place < 256 then
      place = place + 1
      add(letter == 'w' and 'w' or 'q', place, '0', waiter.left, name)
    end
  end
  for _, intent in ipairs(members_of('quorlock:intents:', '-256')) do
    local letter, name = string.match(intent.name, '^([wmrt]):%d+:(.*)$')
    if letter then add((letter == 'w' or letter == 'm') and 'w' or 'q', 0, '0', intent.left, name) end
  end
  return table.concat(lines), held
end
