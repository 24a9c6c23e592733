-- SPDX-License-Identifier: BSD-3-Clause
-- Returns for how many ms the key is still reserved for readers whose turn it is (turn.lua); 0 if all of them have come.
local function turn_left(intents, real_us)
  local last, till = redis.pcall('ZSCORE', intents, 'Rturn'), redis.pcall('ZSCORE', intents, '~turn')
  if type(last) ~= 'string' or type(till) ~= 'string' then return 0 end
  local _, life_ms = queue_clock(real_us)
  local waiting = redis.pcall('ZCOUNT', intents, '4503599627370496', string.format('%.0f', -tonumber(last)))
  return waiting ~= 0 and math.max(tonumber(till) - life_ms, 0) or 0
end
