-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks, each once [, the guard] [, the n counters]
-- ARGV n, a letter for each lock, lease in ms, guard as read or '', 'each' or '', the counters' life in ms, 'strict' or
-- '', max_lease in ms, an owner for each lock [, with 'each' for each lock the floor of an acquire, else the token or
-- 0] [, the prefix]
-- Does for n requests with one lock each what acquire.lua ('a'), extend.lua ('e') and release.lua ('s' silent, 'd'
-- deleted, 'r' neither) do. Returns their replies in wire format in one string. Locks that are ours are deleted with
-- one command, and guard and clock are read once. Acquires come first, because a server that is short of memory refuses
-- only the first write of a script. Rules 2.2 and 3.3.
local n, letters, lease_ms, seen, token, life_ms, how, max_lease_ms = unpack(ARGV)
local owners, tokens = {unpack(ARGV, 9, 8 + n)}, token ~= '' and {unpack(ARGV, 9 + n, 8 + 2 * n)}
local prefix = unpack(ARGV, 9 + (tokens and 2 or 1) * n)
n = tonumber(n)
local away, fenced, sub = #KEYS - n, token ~= '', string.sub
--@ from string: lock_whose, lock_clear, notice_channel, notice_released
--@ from locks: lock_lift
--@ from batch: batch_begin, travel
local acquires, extends, lost, refused, now_us, no_clock = batch_begin(letters, KEYS[n + 1], seen, how)
local broken, replies = lost and 'GUARD', {}
local holders = redis.pcall('MGET', unpack(KEYS, 1, n))
local counters = fenced and redis.pcall('MGET', unpack(KEYS, away + 1, away + n))
-- What MGET returned for the lock and the counter of request `at` is known; where it returned no string, there may be
-- another type, or it was refused. `bare`: take the lock for free then; if it has another type, lock_set finds that.
local at, bare, stored = nil, false, {}
local function whose(key, owner)
  local holder = holders[at]
  if not holder and not bare then holder = nil end
  return lock_whose(key, owner, holder)
end
local function counter_text(i)
  if counters[i] or stored[i] then return counters[i] end
  return redis.pcall('GET', KEYS[i + away])
end
if acquires then
  --@ from fence: fence_read, fence_next, fence_grant_one
  --@ from string: lock_set
  --@ from locks: take
  local digits
  max_lease_ms = tonumber(max_lease_ms)
  local function clock() return now_us, no_clock end
  local count
  if fenced then
    count = function(i, _, us)
      local counter, why
      counter, why, digits =
        fence_grant_one(KEYS[i + away], counter_text(i), tokens[i], life_ms, max_lease_ms, us)
      return counter, why
    end
  end
  local function acquire(i)
    at = i
    if refused then return refused end
    return take(whose, lock_set, lock_lift, lock_clear, notice_channel, KEYS, i, i, owners[i], lease_ms, clock, count)
  end
  -- The same as travel(reply) for a grant, but faster.
  local front, back = '*3\r\n:1\r\n:', '\r\n' .. travel(now_us or 0)
  -- Most locks are free. They are taken here, where the server has MSETEX by one command, after one for their new
  -- counters and one for the others. What is refused is left to the loop behind, which stores the same counters again.
  --@ from server: may_msetex
  local many, pcall, taken, n_taken = may_msetex(KEYS[1]), redis.pcall, {}, 0
  -- Returns the digits of the next counter of a free lock; nil if the counter is odd, or would live shorter.
  local function next_digits(i)
    if counters[i] == nil then return nil end
    local counter, left, text = 0, 0, nil
    if counters[i] then
      counter, left = fence_read(counters[i]), pcall('PTTL', KEYS[i + away])
    end
    if counter and type(left) == 'number' and left <= tonumber(life_ms) then
      counter, text = fence_next(counter, nil, tokens[i], now_us, max_lease_ms)
    end
    return text
  end
  -- Sets a key, or each key of the table to the text behind it; returns whether that was done.
  local function set(...)
    local done = pcall('SET', ...)
    return done and done.ok
  end
  local function set_all(words, ...)
    local size, options = #words, {...}
    for k = 1, #options do words[size + k] = options[k] end
    return size == 0 or pcall('MSETEX', size / 2, unpack(words)) == 1
  end
  -- NX, because a key of another type may have been read as missing.
  local function store(i, text)
    if counters[i] then return set(KEYS[i + away], text, 'PX', life_ms) end
    return set(KEYS[i + away], text, 'NX', 'PX', life_ms)
  end
  local locks, fresh, others, n_fresh, n_others = {}, {}, {}, 0, 0
  for i = acquires, now_us and not refused and n or 0 do
    local free = sub(letters, i, i) == 'a' and holders[i] == false
    local text = free and (not fenced and '0' or next_digits(i))
    if text and many then
      if fenced and counters[i] then
        others[n_others + 1], others[n_others + 2] = KEYS[i + away], text
        n_others = n_others + 2
      elseif fenced then
        fresh[n_fresh + 1], fresh[n_fresh + 2] = KEYS[i + away], text
        n_fresh = n_fresh + 2
      end
      locks[2 * n_taken + 1], locks[2 * n_taken + 2] = KEYS[i], owners[i]
      taken[i], n_taken = text, n_taken + 1
    elseif text and (not fenced or store(i, text)) then
      stored[i] = true
      if set(KEYS[i], owners[i], 'NX', 'PX', lease_ms) then taken[i], n_taken = text, n_taken + 1 end
    end
  end
  if many and n_taken > 0 and set_all(others, 'PX', life_ms) and set_all(fresh, 'NX', 'PX', life_ms) then
    stored = taken
  end
  if many and not (stored == taken and set_all(locks, 'NX', 'PX', lease_ms)) then taken, n_taken = {}, 0 end
  if n_taken == n then return front .. table.concat(taken, back .. front) .. back end
  for i, text in pairs(taken) do replies[i] = front .. text .. back end
  -- Locks that are ours already only live longer, which a server that is short of memory never refuses: they come last.
  for _, free in ipairs({true, false}) do
    for i = acquires, n do
      if sub(letters, i, i) == 'a' and (holders[i] == false) == free and not replies[i] then
        bare = free
        local reply = acquire(i)
        if free and reply.err then
          bare = false
          reply = acquire(i)
        end
        replies[i] = reply[1] == 1 and front .. (fenced and digits or '0') .. back or travel(reply)
      end
    end
  end
  bare = false
  if not string.find(letters, '[^a]') then return table.concat(replies) end
end
local carry
if fenced then
  --@ from fence: fence_carry_one
  carry = function(i)
    if tokens[i] ~= '0' then fence_carry_one(KEYS[i + away], counter_text(i), tokens[i], life_ms) end
  end
end
-- What only some batches need is imported for them alone.
local owned, keys, channels, n_owned, n_channels, left = {}, {}, {}, 0, 0, false
for i = 1, n do
  local letter, ours = sub(letters, i, i), holders[i] == owners[i]
  if letter ~= 'e' and letter ~= 'a' then
    if ours then
      n_owned, owned[i] = n_owned + 1, true
      keys[n_owned] = KEYS[i]
      if fenced and counters[i] ~= tokens[i] then carry(i) end
      if letter ~= 's' then
        n_channels = n_channels + 1
        channels[n_channels] = notice_channel(KEYS[i])
      end
    else
      left = true
    end
  end
end
-- If DEL is refused, each key gets an error of its own.
if n_owned > 0 and type(redis.pcall('DEL', unpack(keys))) == 'table' then n_owned, owned, left = 0, {}, true end
local heard, elsewhere, any = {}, false, false
if n_channels > 0 then
  --@ from batch: who_listens
  heard, elsewhere, any = who_listens(channels, n_channels, false)
end
if n_owned == n and not (any or broken) then return string.rep(':1\r\n', n) end
local renew, release
if extends then
  --@ from locks: prolong
  local extended = {1, now_us or 0}
  renew = function(i)
    at = i
    if lost then return lost end
    -- For most keys the MGET above has returned the owner.
    local why
    if holders[i] == owners[i] then
      why = lock_lift(KEYS[i], lease_ms)
    else
      why = prolong(whose, lock_lift, KEYS, i, i, owners[i], lease_ms)
    end
    if why then return why end
    if fenced and counters[i] == tokens[i] then
      lock_lift(KEYS[i + away], life_ms)
    elseif fenced then
      carry(i)
    end
    return extended
  end
end
if left then
  --@ from locks: give_back
  release = function(i, way)
    at = i
    return give_back(whose, lock_clear, notice_released, KEYS, i, i, owners[i], way, broken, carry)
  end
end
--@ from batch: answer_all
return answer_all(KEYS, letters, owners, replies, owned, heard, elsewhere, 's', broken, notice_released, renew, release)
