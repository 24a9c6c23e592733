-- SPDX-License-Identifier: BSD-3-Clause
local function notice_tagged(prefix, key)
  return prefix .. (string.find(key, '{', 1, true) and key or '{' .. key .. '}')
end
-- Where those who wait for the key listen.
local function notice_channel(key)
  return notice_tagged('redisson_lock__channel:', key)
end
-- Tells those who wait for the key; how many they are. By pcall: a channel that is denied to us must not undo an
-- answer.
--
-- Silent is for ours, who ask again by themselves. Redisson sleeps until it is told, or as long as the key was to
-- last that refused it, and that may have been this one: it is told in any case, by a zero that ours pass over.
--
-- Each waiter of a fair lock listens on a channel of its own, and stands in a list: the first of the list that
-- listens is told, as Redisson does. Nothing of the list is changed; what stands first and does not listen died.
local function notice_released(key, _, silent)
  local channel = notice_channel(key)
  local told = redis.pcall('PUBLISH', channel, silent and '00' or '0')
  local queue = redis.pcall('LRANGE', notice_tagged('redisson_lock_queue:', key), 0, 15)
  for i = 1, #queue do
    local heard = redis.pcall('PUBLISH', channel .. ':' .. queue[i], '0')
    if type(heard) ~= 'number' or heard > 0 then break end
  end
  return type(told) == 'number' and told or 0
end
