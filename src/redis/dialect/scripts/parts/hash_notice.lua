-- SPDX-License-Identifier: BSD-3-Clause
--@ hash_channel
-- Returns the list of the key's waiters for a fair lock.
local function notice_queue(key)
  return notice_tagged('redisson_lock_queue:', key)
end
-- Notifies the key's waiters, and returns their number. It uses pcall because the script must not fail if the channel
-- is denied to the user.
--
-- 'silent' is for waiters of this library, which ask again by themselves. Redisson sleeps until it is notified or until
-- the ttl of the key that refused it has passed, and that key may be this one. So a zero, which this library ignores,
-- is published even then.
--
-- Each waiter of a fair lock has a channel of its own and an entry in a list. As in Redisson, the first of the list
-- that listens is notified. The list is not changed; an entry whose channel has no listener belongs to a dead waiter.
local function notice_released(key, _, how)
  local channel = notice_channel(key)
  local sent = redis.pcall('PUBLISH', channel, how == 'silent' and '00' or '0')
  local queue = redis.pcall('LRANGE', notice_queue(key), 0, 15)
  for i = 1, #queue do
    local heard = redis.pcall('PUBLISH', channel .. ':' .. queue[i], '0')
    if type(heard) ~= 'number' or heard > 0 then break end
  end
  return type(sent) == 'number' and sent or 0
end
