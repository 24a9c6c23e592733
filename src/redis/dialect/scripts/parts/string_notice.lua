-- SPDX-License-Identifier: BSD-3-Clause
-- The channel of the key's waiters.
local function notice_channel(key)
  return 'quorlock:released:' .. key
end
-- Notifies the key's waiters, and returns their number. By pcall: where the channel is denied to the user, the script
-- must not fail.
local function notice_released(key, owner, silent)
  if silent then return 0 end
  local told = redis.pcall('PUBLISH', notice_channel(key), owner)
  return type(told) == 'number' and told or 0
end
