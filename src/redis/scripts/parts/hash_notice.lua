-- SPDX-License-Identifier: BSD-3-Clause
-- Tells those who wait for the key. By pcall: a channel that is denied to us must not undo an answer.
local function notice_released(key)
  local name = string.find(key, '{', 1, true) and key or '{' .. key .. '}'
  redis.pcall('PUBLISH', 'redisson_lock__channel:' .. name, '0')
end
