-- SPDX-License-Identifier: BSD-3-Clause
--@ hash_channel
-- Notifies the key's waiters, and returns their number. By pcall: where the channel is denied to the user, the script
-- must not fail.
--
-- Silent is for waiters of this library, which ask again by themselves. Redisson sleeps until it is notified or the
-- ttl of the key that refused it is over, and that key may be this one: so a zero is published in any case, which this
-- library ignores.
--
-- Each waiter of a fair lock has a channel of its own and an entry in a list: the first of the list that listens is
-- notified, as by Redisson. The list is not changed; an entry that does not listen is of a dead waiter.
local function notice_released(key, _, how)
  local channel = notice_channel(key)
  local told = redis.pcall('PUBLISH', channel, how == 'silent' and '00' or '0')
  local queue = redis.pcall('LRANGE', notice_tagged('redisson_lock_queue:', key), 0, 15)
  for i = 1, #queue do
    local heard = redis.pcall('PUBLISH', channel .. ':' .. queue[i], '0')
    if type(heard) ~= 'number' or heard > 0 then break end
  end
  return type(told) == 'number' and told or 0
end
