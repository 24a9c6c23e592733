-- SPDX-License-Identifier: BSD-3-Clause
-- Gives readers that the holder blocked their turn before the next writer: the key is reserved for them until all have
-- come, for a second at most. This is done only if somebody was notified, because waiting clients listen.
local intents, readers = 'quorlock:intents:' .. key, {}
local waiting = redis.pcall('ZRANGE', intents, '0', '-1', 'WITHSCORES')
local time = waiting[1] and redis.pcall('TIME')
local now = time and not time.err and time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, now and #waiting or 0, 2 do
  if string.sub(waiting[i], 1, 2) == 'r:' and tonumber(waiting[i + 1]) > now then readers[#readers + 1] = waiting[i] end
end
if readers[1] then
  local kept = redis.pcall('SET', key, 'quorlock:readers', 'NX', 'PX', '1000')
  for i = 1, kept and not kept.err and #readers or 0 do
    redis.pcall('ZADD', intents, string.format('%.0f', now + 1000), 't' .. string.sub(readers[i], 2))
    redis.pcall('ZREM', intents, readers[i])
  end
end
