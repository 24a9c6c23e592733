-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the counter at the key, 0 if there is none; or nil and an error. Doubles are exact below 2^53 only.
local function fence_read(key)
  local text = get(key)
  if type(text) == 'table' then return nil, text end
  local counter = tonumber(text or 0)
  if counter and counter >= 0 and counter < 9007199254740992 and counter == math.floor(counter) then
    return counter
  end
  return nil, redis.error_reply('FENCE the counter is no whole number below 2^53')
end
-- Returns all digits of the counter; the last result is cached.
local text_of, text
local function fence_text(counter)
  if counter ~= text_of then
    text_of, text = counter, string.format('%.0f', counter)
  end
  return text
end
-- Stores the counter; returns nil, or an error. The counter's life is never shortened.
local function fence_store(key, counter, life_ms)
  local left = redis.pcall('PTTL', key)
  if type(left) == 'table' then return left end
  if left > tonumber(life_ms) then life_ms = string.format('%.0f', left) end
  local done = redis.pcall('SET', key, fence_text(counter), 'PX', life_ms)
  if done.err then return done end
end
