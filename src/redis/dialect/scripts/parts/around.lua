-- SPDX-License-Identifier: BSD-3-Clause
-- The highest counter or 0; '' where there is no guard, else what its quarantine is for, as guard_text.lua has it, or
-- 'client:' and the max_lease of that client; the rest of a quarantine in ms or -1. They are no keys of the
-- request, so that a user without the right to read them can peek all the same.
local function look_around()
  local highest = 0
  for i = 1, #KEYS do
    local counter = redis.pcall('GET', 'quorlock:fence:' .. KEYS[i])
    counter = type(counter) == 'string' and string.match(counter, '^%d+$') or 0
    highest = math.max(highest, tonumber(counter))
  end
  local guard = redis.pcall('GET', 'quorlock:guard')
  local left, kept = -1, ''
  if type(guard) == 'string' then
    kept = 'unknown'
    local lease, till, longest, rest = string.match(guard, '^[12]|%d+|[^|]*|(%d+)|[^|]*|[^|]*|(%d+)|?(%d*)(.*)$')
    local time = redis.pcall('TIME')
    local moved = nil
    -- Who contends for the lock does not ask that: INFO takes longer than all else here.
    if till and ARGV[1] then
      --@ moved
      moved = guard_moved(guard)
    end
    if till and not time.err then
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      local cause, wanted, wanted_till = string.match(rest, '|(%a+)|(%d+)|(%d+)$')
      kept = cause or kept
      left = tonumber(till) - now
      if moved then
        -- It begins when a client that takes locks sees this.
        left = math.max(tonumber(lease), left > 0 and tonumber(longest) or 0)
        kept = 'restart'
      end
      if wanted and tonumber(wanted_till) - now > math.max(0, left) then
        left, kept = tonumber(wanted_till) - now, 'client:' .. wanted
      end
      if left <= 0 then left = -1 end
    end
  end
  return highest, kept, left
end
