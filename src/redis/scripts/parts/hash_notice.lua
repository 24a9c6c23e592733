-- SPDX-License-Identifier: BSD-3-Clause
-- Where those who wait for the key listen.
local function notice_channel(key)
  return 'redisson_lock__channel:' .. (string.find(key, '{', 1, true) and key or '{' .. key .. '}')
end
-- Tells those who wait for the key; how many they are. By pcall: a channel that is denied to us must not undo an
-- answer.
--
-- Silent is for ours, who ask again by themselves. Redisson sleeps until it is told, or as long as the key was to
-- last that refused it, and that may have been this one: it is told in any case, by a zero that ours pass over.
local function notice_released(key, _, silent)
  local told = redis.pcall('PUBLISH', notice_channel(key), silent and '00' or '0')
  return type(told) == 'number' and told or 0
end
