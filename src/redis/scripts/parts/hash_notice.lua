-- SPDX-License-Identifier: BSD-3-Clause
-- Tells those who wait for the key; how many they are. By pcall: a channel that is denied to us must not undo an
-- answer.
local function notice_released(key)
  local name = string.find(key, '{', 1, true) and key or '{' .. key .. '}'
  local told = redis.pcall('PUBLISH', 'redisson_lock__channel:' .. name, '0')
  return type(told) == 'number' and told or 0
end
