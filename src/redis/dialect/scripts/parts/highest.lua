-- SPDX-License-Identifier: BSD-3-Clause
-- The highest of the counters, which come last; or nil and an error.
local function fence_highest(n)
  local highest = 0
  for i = #KEYS - n + 1, #KEYS do
    local counter, why = fence_read(KEYS[i])
    if not counter then return nil, why end
    highest = math.max(highest, counter)
  end
  return highest
end
-- Stores it in all of them: nil, or an error.
local function fence_level(n, counter, life_ms)
  for i = #KEYS - n + 1, #KEYS do
    local why = fence_store(KEYS[i], counter, life_ms)
    if why then return why end
  end
end
