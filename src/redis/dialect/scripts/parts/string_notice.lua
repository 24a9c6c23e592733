-- SPDX-License-Identifier: BSD-3-Clause
-- Where those who wait for the key listen.
local function notice_channel(key)
  return 'quorlock:released:' .. key
end
-- Tells those who wait for the key; how many they are. By pcall: a channel that is denied to us must not undo an
-- answer.
local function notice_released(key, owner, silent)
  if silent then return 0 end
  local told = redis.pcall('PUBLISH', notice_channel(key), owner)
  return type(told) == 'number' and told or 0
end
