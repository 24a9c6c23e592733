-- SPDX-License-Identifier: BSD-3-Clause
-- Gives readers that the holder blocked their turn before the next writer: the key is reserved for them until all have
-- come, for a second at most. The place of the last of them (queue.lua) says who they are: the member Rturn has it,
-- below 0. This is done only if somebody was notified, because waiting clients listen.
local intents = 'quorlock:intents:' .. key
local last = redis.pcall('ZRANGE', intents, '-1', '-1', 'WITHSCORES')
if last[2] and tonumber(last[2]) >= 4503599627370496 then
  --@ queue_clock
  local time = redis.pcall('TIME')
  local _, life_ms = queue_clock(time[1] * 1000000 + time[2])
  local till = redis.pcall('ZSCORE', intents, '~' .. string.sub(last[1], 2))
  local waits = type(till) == 'string' and tonumber(till) > life_ms
  local kept = waits and redis.pcall('SET', key, 'quorlock:readers', 'NX', 'PX', '1000')
  if kept and not kept.err then
    redis.pcall('ZADD', intents, string.format('%.0f', -tonumber(last[2])), 'Rturn', string.format('%.0f', life_ms + 1000),
      '~turn')
  end
end
