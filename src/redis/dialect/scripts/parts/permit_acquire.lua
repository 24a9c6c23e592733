-- SPDX-License-Identifier: BSD-3-Clause
-- Takes a slot, or changes nothing.
--@ permits
if not why and how == 'strict' then
  --@ moved
  why = guard_moved(ARGV[5])
end
if why then return why end
local number, slot, whose, bad
number, why = permits_found(permits)
if why then return why end
for i = 0, any and permits - 1 or 0 do
  local at = (asked + i) % permits
  if not any or string.sub(passed, at + 1, at + 1) ~= '1' then
    whose = lock_whose(slot_key(at), owner)
    if type(whose) == 'table' then
      whose = named(slot_key(at), whose)
      if how == 'repair' or not string.find(whose.err, 'WRONGTYPE', 1, true) then return whose end
      bad = bad or whose
    elseif not whose or whose == true then
      slot = at
      break
    end
  end
end
if not slot then
  local holder, ttl, first, free, good = '', -2, -1, {}, not bad
  for at = 0, permits - 1 do
    whose = lock_whose(slot_key(at))
    free[at + 1] = whose and '0' or '1'
    good = good or type(whose) ~= 'table'
    local left = whose and redis.pcall('PTTL', slot_key(at))
    if type(left) == 'number' and type(whose) == 'string' then
      if at == asked or holder == '' then
        holder, ttl = whose, left
      end
      if left >= 0 and (left < first or first < 0) and string.sub(passed, at + 1, at + 1) ~= '1' then first = left end
    end
  end
  -- A value that is not a slot stays for good: it is an error only if there is no other slot.
  if not good then return bad end
  if bad and ttl == -2 then holder, ttl = 'no slot: ' .. string.match(bad.err, 'WRONGTYPE (.*)'), -1 end
  -- 0 if the user may not run PUBSUB.
  local count = redis.pcall('PUBSUB', 'NUMSUB', notice_channel(name))
  return {holder, ttl, count.err and 0 or count[2], table.concat(free), first}
end
local counter, now_us, key = 0, nil, slot_key(slot)
now_us, why = clock_us()
if ARGV[6] ~= '' and not now_us then return why end
-- The number of permits is written before the slot: no slot may be held without it.
why = permits_keep(number, permits, lease_ms)
if why then return why end
if ARGV[6] ~= '' then
  --@ fence
  --@ next
  counter, why = fence_read('quorlock:fence:' .. key)
  if not counter then return why end
  counter = fence_next(counter, how, ARGV[6], now_us, ARGV[12])
  why = counter > 0 and fence_store('quorlock:fence:' .. key, counter, ARGV[7])
  if why then return why end
end
if whose then
  why = lock_lift(key, lease_ms)
else
  why = lock_set(key, owner, lease_ms)
end
return why or {1, counter, now_us or 0, slot}
