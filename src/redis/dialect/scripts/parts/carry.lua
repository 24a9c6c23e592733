-- SPDX-License-Identifier: BSD-3-Clause
-- Raises each of these counters to at least the token; with token 0 they only live longer. A failure here does not fail
-- the script. This code is not in every script, because even a function that is not called costs time.
--@ fence
local function fence_carry(first, last, token, life_ms)
  for i = first, last do
    local counter = fence_read(KEYS[i])
    if counter then
      counter = math.max(counter, tonumber(token))
      if counter > 0 then fence_store(KEYS[i], counter, life_ms) end
    end
  end
end
