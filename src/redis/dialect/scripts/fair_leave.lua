-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks
-- ARGV n, the waiter's name [, the prefix]
-- Takes a client that waits no more out of the queues. If it has no lock, those that wait behind it are notified. With
-- its yes they expect a notice of its release instead. Returns 1. Rule 9.4.
local n, waiter, prefix = unpack(ARGV)
--@ from queue: queue_of, queue_exists, queue_remove, queue_moved
--@ from string: notice_channel
for i = 1, tonumber(n) do
  local exists, why = queue_exists(queue_of(KEYS[i]))
  if why then return why end
  if exists and queue_remove(queue_of(KEYS[i]), waiter) then
    redis.pcall('PUBLISH', notice_channel(KEYS[i]), waiter)
    queue_moved(queue_of(KEYS[i]), KEYS[i])
  end
end
return 1
