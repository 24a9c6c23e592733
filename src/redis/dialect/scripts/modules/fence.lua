-- SPDX-License-Identifier: BSD-3-Clause
-- Counters of fencing tokens: a number as text at the key. Doubles are exact below 2^53 only.

-- fence_read - return the counter of what GET returned, 0 for a missing one; or nil and an error.
local function fence_read(text)
  if type(text) == 'table' then return nil, text end
  local counter = tonumber(text or 0)
  if counter and counter >= 0 and counter < 9007199254740992 and counter % 1 == 0 then return counter end
  return nil, redis.error_reply('FENCE the counter is no whole number below 2^53')
end

-- fence_next - return the counter of a grant, and its digits: the next number, and at least the floor. A repair has its
-- token already. Rules 5.1 and 5.4.
local function fence_next(counter, how, floor, now_us, max_lease_ms)
  local least = tonumber(floor)
  if how == 'repair' then
    counter = math.max(counter, least)
    return counter, string.format('%.0f', counter)
  end
  -- A client whose clock is far ahead must not use up the numbers.
  local most = now_us + max_lease_ms * 500
  if least <= counter or least > most then
    counter = math.max(counter + 1, math.min(least, most))
    return counter, string.format('%.0f', counter)
  end
  -- Usually the result is the floor, whose digits are known.
  return least, floor
end

-- fence_store - store the counter; return nil, or an error. The counter's life is never shortened. Rule 5.6.
local function fence_store(key, digits, life_ms)
  local left = redis.pcall('PTTL', key)
  if type(left) == 'table' then return left end
  if left > tonumber(life_ms) then life_ms = string.format('%.0f', left) end
  local done = redis.pcall('SET', key, digits, 'PX', life_ms)
  if done.err then return done end
end

-- fence_grant - return the counter of a grant, which those from `first` to `last` have now; or nil and an error. The
-- floor 'read' returns the highest without changing any.
local function fence_grant(keys, first, last, floor, life_ms, how, max_lease_ms, now_us)
  local highest = 0
  for i = first, last do
    local counter, why = fence_read(redis.pcall('GET', keys[i]))
    if not counter then return nil, why end
    highest = math.max(highest, counter)
  end
  if floor == 'read' then return highest end
  local counter, digits = fence_next(highest, how, floor, now_us, max_lease_ms)
  for i = first, counter > 0 and last or 0 do
    local why = fence_store(keys[i], digits, life_ms)
    if why then return nil, why end
  end
  return counter
end

-- fence_count - return what counts the grants of take(): the last n of these keys are the counters; nil if there are
-- none.
local function fence_count(keys, n, floor, life_ms, how, max_lease_ms)
  if floor == '' then return nil end
  return function(_, _, now_us)
    --@ from fence: fence_grant
    return fence_grant(keys, #keys - n + 1, #keys, floor, life_ms, how, max_lease_ms, now_us)
  end
end

-- fence_grant_one - return the same of one counter, whose text was read; and third its digits.
local function fence_grant_one(key, text, floor, life_ms, max_lease_ms, now_us)
  local counter, why = fence_read(text)
  if not counter then return nil, why end
  local digits
  counter, digits = fence_next(counter, nil, floor, now_us, max_lease_ms)
  why = fence_store(key, digits, life_ms)
  if why then return nil, why end
  return counter, nil, digits
end

-- fence_carry_one - raise a counter, whose text was read, to at least the token; with token 0 it only lives longer. A
-- failure here does not fail the script.
local function fence_carry_one(key, text, token, life_ms)
  local counter = fence_read(text)
  if not counter then return end
  if counter > tonumber(token) then token = string.format('%.0f', counter) end
  if token ~= '0' then fence_store(key, token, life_ms) end
end

-- fence_carry - do so with the counters from `first` to `last`. Rule 5.6.
local function fence_carry(keys, first, last, token, life_ms)
  for i = first, last do fence_carry_one(keys[i], redis.pcall('GET', keys[i]), token, life_ms) end
end

-- fence_raise - raise those to the token unless one is higher; return the counter; or nil and an error. Rule 5.3.
local function fence_raise(keys, first, last, token, life_ms)
  local highest, number = 0, tonumber(token)
  for i = first, last do
    local counter, why = fence_read(redis.pcall('GET', keys[i]))
    if not counter then return nil, why end
    highest = math.max(highest, counter)
  end
  -- A grant with a counter below an existing one could share its token with another grant.
  if highest > number then return highest end
  for i = first, last do
    local why = fence_store(keys[i], token, life_ms)
    if why then return nil, why end
  end
  return number
end
