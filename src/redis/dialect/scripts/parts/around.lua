-- SPDX-License-Identifier: BSD-3-Clause
-- Returns three things. The highest counter, or 0. The cause of the guard's quarantine as in guard_text.lua, or
-- 'client:' and the max_lease of that client, or '' without a guard. The rest of the quarantine in ms, or -1. These
-- keys are not among the request's KEYS, so that a user who may not read them can still peek.
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
    -- Clients that contend for the lock do not ask for this: INFO takes longer than everything else here.
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
        -- The quarantine begins when a client that takes locks notices this.
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
