-- SPDX-License-Identifier: BSD-3-Clause
-- Takes the locks from `first` to `last`, all or none, and returns the reply. With a `floor` each lock has a counter,
-- `away` keys behind it; the floor 'read' returns the counter without changing it.
local _, ours, other, wrong, theirs, longest = look_all(first, last, owner)
if wrong then return wrong end
if other then
  -- 0 if the user may not run PUBSUB.
  local count = redis.pcall('PUBSUB', 'NUMSUB', notice_channel(KEYS[longest]))
  other[3] = count.err and 0 or count[2]
  if last > first then
    for i = first, last do theirs[i] = theirs[i] and '1' or '0' end
    other[4] = table.concat(theirs)
  end
  return other
end
if not now_us then now_us, why = clock_us() end
local counter = 0
-- The counters are written before the locks: if memory is short, no lock is left without its counter.
if floor then
  if not now_us then return why end
  counter, why = fence_highest(first + away, last + away)
  if not counter then return why end
  if floor ~= 'read' then counter = fence_next(counter, how, floor, now_us, max_lease_ms) end
  why = counter > 0 and floor ~= 'read' and fence_level(first + away, last + away, counter, life_ms)
  if why then return why end
end
for i = first, last do
  if ours[i] then
    why = lock_lift(KEYS[i], lease_ms)
  else
    why = lock_set(KEYS[i], owner, lease_ms)
  end
  if why then
    for k = first, i - 1 do
      if not ours[k] then lock_clear(KEYS[k], owner) end
    end
    return why
  end
end
return {1, counter, now_us or 0}
