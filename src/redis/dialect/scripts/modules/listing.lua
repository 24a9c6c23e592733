-- SPDX-License-Identifier: BSD-3-Clause
-- What is at a key, for people.

-- list - run one step of SCAN, and return {next cursor, locks}: a line for each lock among the keys of this step with a
-- letter (x: a key, r: readers, s: a slot), a number (of readers; of permits), ms left, the lengths of key and holder,
-- and both. d: a key that the user may not read. {'', ''}: the reply would be too long, so ask for fewer keys.
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
      if type(left) == 'table' then letter, number = nil, left end
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
    local counter = redis.pcall('GET', 'quorlock:fence:' .. keys[i])
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
