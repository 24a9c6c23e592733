-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the highest of these counters; or nil and an error.
local function fence_highest(first, last)
  local highest = 0
  for i = first, last do
    local counter, why = fence_read(KEYS[i])
    if not counter then return nil, why end
    highest = math.max(highest, counter)
  end
  return highest
end
-- Stores the counter in all of them; returns nil, or an error.
local function fence_level(first, last, counter, life_ms)
  for i = first, last do
    local why = fence_store(KEYS[i], counter, life_ms)
    if why then return why end
  end
end
