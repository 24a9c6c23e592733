-- SPDX-License-Identifier: BSD-3-Clause
local n, owner, lease_ms = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local why = guard_broken(ARGV[4])
if not why and ARGV[5] == 'strict' then
  --@ moved
  why = guard_moved(ARGV[4])
end
if why then return why end
local _, ours, other, wrong = look_all(1, n, owner)
if wrong then return wrong end
if other then
  -- 0 where the right to ask for the number is missing.
  local crowd = redis.pcall('PUBSUB', 'NUMSUB', notice_channel(KEYS[1]))
  return {other[1], other[2], crowd.err and 0 or crowd[2]}
end
local counter, now_us = 0, nil
now_us, why = clock_us()
-- Before the locks: where memory is short, no lock is left without its counter.
if ARGV[6] ~= '' then
  if not now_us then return why end
  --@ fence
  --@ highest
  counter, why = fence_highest(n)
  if not counter then return why end
  if ARGV[5] == 'repair' and ARGV[6] ~= 'read' then
    counter = math.max(counter, tonumber(ARGV[6]))
  elseif ARGV[6] ~= 'read' then
    -- A client whose clock is far ahead must not use up the numbers.
    counter = math.max(counter + 1, math.min(tonumber(ARGV[6]), now_us + tonumber(ARGV[8]) * 500))
  end
  why = counter > 0 and ARGV[6] ~= 'read' and fence_level(n, counter, ARGV[7])
  if why then return why end
end
for i = 1, n do
  if ours[i] then
    why = lock_lift(KEYS[i], lease_ms)
  else
    why = lock_set(KEYS[i], owner, lease_ms)
  end
  if why then
    for k = 1, i - 1 do
      if not ours[k] then lock_clear(KEYS[k], owner) end
    end
    return why
  end
end
return {1, counter, now_us or 0}
