-- SPDX-License-Identifier: BSD-3-Clause
-- As combined.lua, for hashes. Most locks are free when they are acquired, and ours when they are released, so neither
-- is looked at before: one command tells that there is none of the locks to acquire, and HDEL tells whether it was
-- ours. Rules 2.2 and 3.3.
local n, letters, lease_ms, seen, token, life_ms, how, max_lease_ms = unpack(ARGV)
local owners, tokens = {unpack(ARGV, 9, 8 + n)}, token ~= '' and {unpack(ARGV, 9 + n)}
n = tonumber(n)
local away, fenced, sub = #KEYS - n, token ~= '', string.sub
--@ from hash: lock_whose, lock_clear, notice_channel, notice_released
--@ from locks: lock_lift
--@ from batch: batch_begin, travel
local acquires, extends, lost, refused, now_us, no_clock = batch_begin(letters, KEYS[n + 1], seen, how)
local broken, replies = lost and 'GUARD', {}
if acquires then
  --@ from hash: lock_set
  --@ from locks: take
  local count, digits = nil, '0'
  local function clock() return now_us, no_clock end
  if fenced then
    --@ from fence: fence_grant_one
    count = function(i, _, us)
      local key, counter, why = KEYS[i + away], nil, nil
      counter, why, digits = fence_grant_one(key, redis.pcall('GET', key), tokens[i], life_ms, max_lease_ms, us)
      return counter, why
    end
  end
  local function acquire(i)
    local owner = owners[i]
    return take(lock_whose, lock_set, lock_lift, lock_clear, notice_channel, KEYS, i, i, owner, lease_ms, clock, count)
  end
  -- The same as travel(reply) for a grant, but faster.
  local wanted, front, back = {}, '*3\r\n:1\r\n:', '\r\n' .. travel(now_us or 0)
  for i = acquires, n do
    if sub(letters, i, i) == 'a' then wanted[#wanted + 1] = KEYS[i] end
  end
  local all_free, granted = redis.pcall('EXISTS', unpack(wanted)) == 0, front .. '0' .. back
  -- Locks that are ours already only live longer, which a server that is short of memory never refuses: they come last.
  for _, free in ipairs({true, false}) do
    for i = acquires, n do
      local asks = sub(letters, i, i) == 'a' and not replies[i]
      if asks and (not free or all_free or redis.pcall('EXISTS', KEYS[i]) == 0) then
        local owner, why = owners[i], refused
        if free and not fenced then
          why = why or lock_set(KEYS[i], owner, lease_ms)
          replies[i] = why and travel(why) or granted
        else
          local reply = why or acquire(i)
          replies[i] = reply[1] == 1 and front .. digits .. back or travel(reply)
        end
      end
    end
  end
  if not string.find(letters, '[^a]') then return table.concat(replies) end
end
local carry
if fenced then
  --@ from fence: fence_carry_one
  carry = function(i)
    local key = KEYS[i + away]
    if tokens[i] ~= '0' then fence_carry_one(key, redis.pcall('GET', key), tokens[i], life_ms) end
  end
end
-- What only some batches need is imported for them alone.
local owned, channels, n_owned, queued, left = {}, {}, 0, false, false
if string.find(letters, '[^ae]') then
  --@ from hash: notice_queue
  local queues = {}
  -- All counters come before the first HDEL, behind which a server that is short of memory refuses no write.
  for i = 1, fenced and n or 0 do
    local gives_back = not string.find('ae', sub(letters, i, i), 1, true)
    if gives_back and redis.pcall('HEXISTS', KEYS[i], owners[i]) == 1 then carry(i) end
  end
  for i = 1, n do
    local letter = sub(letters, i, i)
    if letter ~= 'e' and letter ~= 'a' then
      if redis.pcall('HDEL', KEYS[i], owners[i]) == 1 then
        n_owned, owned[i] = n_owned + 1, true
        channels[n_owned], queues[n_owned] = notice_channel(KEYS[i]), notice_queue(KEYS[i])
      else
        left = true
      end
    end
  end
  if n_owned > 0 then queued = redis.pcall('EXISTS', unpack(queues)) ~= 0 end
end
local heard, elsewhere, any = {}, queued, queued
if n_owned > 0 then
  --@ from batch: who_listens
  heard, elsewhere, any = who_listens(channels, n_owned, queued)
end
if n_owned == n and not (any or broken) then return string.rep(':1\r\n', n) end
local renew, release
if extends then
  --@ from locks: prolong
  local extended = {1, now_us or 0}
  renew = function(i)
    local why = lost or prolong(lock_whose, lock_lift, KEYS, i, i, owners[i], lease_ms)
    if why then return why end
    if fenced then carry(i) end
    return extended
  end
end
if left then
  --@ from locks: give_back
  release = function(i, way)
    return give_back(lock_whose, lock_clear, notice_released, KEYS, i, i, owners[i], way, broken, carry)
  end
end
--@ from batch: answer_all
return answer_all(KEYS, letters, owners, replies, owned, heard, elsewhere, nil, broken, notice_released, renew, release)
