-- SPDX-License-Identifier: BSD-3-Clause
-- The highest counter or 0; 1 where there is a guard; the rest of a quarantine in ms or -1. They are no keys of the
-- request, so that a user without the right to read them can peek all the same.
local function look_around()
  local highest = 0
  for i = 1, #KEYS do
    local counter = redis.pcall('GET', 'quorlock:fence:' .. KEYS[i])
    counter = type(counter) == 'string' and string.match(counter, '^%d+$') or 0
    highest = math.max(highest, tonumber(counter))
  end
  local guard = redis.pcall('GET', 'quorlock:guard')
  local left, kept = -1, 0
  if type(guard) == 'string' then
    kept = 1
    local lease, till, longest = string.match(guard, '^1|%d+|.-|(%d+)|[^|]*|[^|]*|(%d+)|?(%d*)$')
    local time = redis.pcall('TIME')
    local moved = nil
    -- Who contends for the lock does not ask that: INFO takes longer than all else here.
    if till and ARGV[1] then
      --@ moved
      moved = guard_moved(guard)
    end
    if moved then
      -- It begins when a client that takes locks sees this.
      left = math.max(tonumber(lease), tonumber(longest) or 0)
    elseif till and not time.err then
      left = tonumber(till) - time[1] * 1000 - math.floor(time[2] / 1000)
      if left <= 0 then left = -1 end
    end
  end
  return highest, kept, left
end
