-- SPDX-License-Identifier: BSD-3-Clause
--@ string_channel
-- Notifies the key's waiters, and returns their number. By pcall: where the channel is denied to the user, the script
-- must not fail.
local function notice_released(key, owner, silent)
  if silent then return 0 end
  local told = redis.pcall('PUBLISH', notice_channel(key), owner)
  return type(told) == 'number' and told or 0
end
