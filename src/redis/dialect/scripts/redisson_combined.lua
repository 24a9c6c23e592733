-- SPDX-License-Identifier: BSD-3-Clause
-- As combined.lua, for hashes. Most locks are free when they are acquired, and ours when they are released, so neither
-- is looked at before: one command tells that there is none of the locks to acquire, and HDEL tells whether it was
-- ours.
--@ get
--@ guarded
--@ clock
--@ hash
--@ hash_whose
--@ hash_clear
--@ hash_notice
--@ look
--@ lift
--@ travel
--@ together
if acquires then
  --@ hash_set
  --@ together_take
  local wanted, granted = {}, front .. '0' .. back
  for i = acquires, n do
    if sub(letters, i, i) == 'a' then wanted[#wanted + 1] = KEYS[i] end
  end
  local all_free = redis.pcall('EXISTS', unpack(wanted)) == 0
  -- Locks that are ours already only live longer, which a server that is short of memory never refuses: they come last.
  for _, free in ipairs({true, false}) do
    for i = acquires, n do
      local asks = sub(letters, i, i) == 'a' and not replies[i]
      if asks and (not free or all_free or redis.pcall('EXISTS', KEYS[i]) == 0) then
        local owner, why = ARGV[i + 7], moved
        if free and not fenced then
          why = why or lock_set(KEYS[i], owner, lease_ms)
          replies[i] = why and travel(why) or granted
        else
          local reply = acquire(i, owner)
          replies[i] = reply[1] == 1 and front .. fence_text(reply[2]) .. back or travel(reply)
        end
      end
    end
  end
  if not string.find(letters, '[^a]') then return table.concat(replies) end
end
--@ together_others
local owned, channels, queues, n_owned = {}, {}, {}, 0
local function gives_back(i)
  local letter = sub(letters, i, i)
  return letter ~= 'e' and letter ~= 'a'
end
-- All counters come before the first HDEL, behind which a server that is short of memory refuses no write.
for i = 1, fenced and n or 0 do
  if gives_back(i) and redis.pcall('HEXISTS', KEYS[i], ARGV[i + 7]) == 1 then carry(i) end
end
for i = 1, n do
  if gives_back(i) and redis.pcall('HDEL', KEYS[i], ARGV[i + 7]) == 1 then
    n_owned, owned[i] = n_owned + 1, true
    channels[n_owned], queues[n_owned] = notice_channel(KEYS[i]), notice_queue(KEYS[i])
  end
end
local queued = n_owned > 0 and redis.pcall('EXISTS', unpack(queues)) ~= 0
local n_channels, mute, renew = n_owned, nil, extend
--@ together_replies
