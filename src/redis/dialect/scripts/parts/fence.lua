-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the counter that the text is, false for a missing one: 0; nil or false if it is none. Doubles are exact below
-- 2^53 only.
local function fence_number(text)
  local counter = tonumber(text or 0)
  return counter and counter >= 0 and counter < 9007199254740992 and counter % 1 == 0 and counter
end
-- Returns the counter at the key; or nil and an error.
local function fence_read(key)
  local text = get(key)
  if type(text) == 'table' then return nil, text end
  local counter = fence_number(text)
  if counter then return counter end
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
