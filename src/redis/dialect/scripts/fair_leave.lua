-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks
-- ARGV n, the waiter's name
-- Takes a client that waits no more out of the queues. If it has no lock, those that wait behind it are notified. Returns
-- 1.
--@ clock
--@ string_channel
--@ queue
local now_us, why = clock_us()
if not now_us then return why end
for i = 1, tonumber(ARGV[1]) do
  local line
  line, why = queue_read(KEYS[i], math.floor(now_us / 1000))
  if not line then return why end
  for k = 1, #line, 2 do
    if string.match(line[k], '^%d+:(.*):%a$') == ARGV[2] then
      redis.pcall('ZREM', queue_of(KEYS[i]), line[k])
      -- Those behind expect a notice of its release instead.
      if string.match(line[k], '%l$') then redis.pcall('PUBLISH', notice_channel(KEYS[i]), ARGV[2]) end
    end
  end
end
return 1
