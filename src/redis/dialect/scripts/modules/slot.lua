-- SPDX-License-Identifier: BSD-3-Clause
-- Permits: a name has so many slots, and each is a lock of its own, a string. The first key of a request is a slot's:
-- it contains the slot's number and the name. The keys of the other slots are made from it: only a refusal reads them,
-- so most requests need not name them.
--@ from errors: foreign_named
--@ from string: lock_whose, lock_set, notice_channel
--@ from locks: lock_lift
--@ from server: clock_us
--@ from names: name_of

-- slot_key - return the key of a slot.
local function slot_key(name, slot)
  return name_of('quorlock:slot:' .. slot .. ':', name)
end

-- permits_found - return the number of permits that the name has here, at the key; nil if it has none yet, or another
-- number whose slots are all free; nil and an error if one of those is held. Rule 7.7.
local function permits_found(key, name, permits)
  local number = lock_whose(key)
  if type(number) == 'table' then return nil, foreign_named(key, number) end
  if not number or number == permits then return number end
  for slot = 0, math.min(tonumber(number) or 64, 64) - 1 do
    local whose = lock_whose(slot_key(name, slot))
    if type(whose) == 'table' then return nil, foreign_named(slot_key(name, slot), whose) end
    if whose then
      return nil, redis.error_reply('PERMITS the name has ' .. number .. ' permits, this lock gives ' .. permits)
    end
  end
end

-- permits_keep - keep the number of permits at the key for as long as any slot is held: its expiry is never before a
-- slot's. `number` is of permits_found(). Return nil, or an error. Rule 7.7.
local function permits_keep(key, number, permits, lease_ms)
  local left = redis.pcall('PTTL', key)
  if type(left) == 'table' then return left end
  if number and left >= tonumber(lease_ms) then return nil end
  local done = redis.pcall('SET', key, permits, 'PX', string.format('%.0f', math.max(left, tonumber(lease_ms))))
  if done.err then return done end
end

-- slot_find - return the slot that is asked for, or with any the first one from it on, wrapping around, that is free
-- and not skipped, or ours; and whether it is ours. Nil: there is none; then third the first error about a value that
-- is no slot, if there was one; and fourth an error that ends the request. For 'repair' such a value ends it, too.
local function slot_find(name, asked, owner, how, permits, any, passed)
  local bad
  for i = 0, any and permits - 1 or 0 do
    local at = (asked + i) % permits
    if not any or string.sub(passed, at + 1, at + 1) ~= '1' then
      local whose = lock_whose(slot_key(name, at), owner)
      if type(whose) == 'table' then
        whose = foreign_named(slot_key(name, at), whose)
        if how == 'repair' or not string.find(whose.err, 'WRONGTYPE', 1, true) then return nil, nil, bad, whose end
        bad = bad or whose
      elseif not whose or whose == true then
        return at, whose, bad
      end
    end
  end
  return nil, nil, bad
end

-- slot_refusal - return the reply of an acquire that found no slot. bad: the first value that is no slot, as an error.
local function slot_refusal(name, asked, permits, passed, bad)
  local holder, ttl, first, free, good = '', -2, -1, {}, not bad
  for at = 0, permits - 1 do
    local whose = lock_whose(slot_key(name, at))
    free[at + 1] = whose and '0' or '1'
    good = good or type(whose) ~= 'table'
    local left = whose and redis.pcall('PTTL', slot_key(name, at))
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

-- slot_acquire - take a slot, or change nothing, and return the reply. number_key: where the number of permits is.
-- Rule 7.1.
local function slot_acquire(number_key, name, asked, owner, lease_ms, token, life_ms, how, max_lease_ms, permits, any,
    passed)
  local number, why = permits_found(number_key, name, permits)
  if why then return why end
  local slot, ours, bad
  slot, ours, bad, why = slot_find(name, asked, owner, how, permits, any, passed)
  if why then return why end
  if not slot then
    --@ from slot: slot_refusal
    return slot_refusal(name, asked, permits, passed, bad)
  end
  local counter, key, now_us = 0, slot_key(name, slot), nil
  now_us, why = clock_us()
  if token ~= '' and not now_us then return why end
  -- The number of permits is written before the slot: no slot may be held without it.
  why = permits_keep(number_key, number, permits, lease_ms)
  if why then return why end
  if token ~= '' then
    --@ from fence: fence_grant
    counter, why = fence_grant({name_of('quorlock:fence:', key)}, 1, 1, token, life_ms, how, max_lease_ms, now_us)
    if not counter then return why end
  end
  if ours then
    why = lock_lift(key, lease_ms)
  else
    why = lock_set(key, owner, lease_ms)
  end
  return why or {1, counter, now_us or 0, slot}
end
