-- SPDX-License-Identifier: BSD-3-Clause
-- Each of the counters, which come last, to the token at least, where there is one; what fails here is no fault
-- of the caller's. Functions cost time even where nobody calls them, so this is no part of a script's beginning.
--@ fence
local function fence_carry(n, token, life_ms)
  for i = #KEYS - n + 1, #KEYS do
    local counter = fence_read(KEYS[i])
    if counter then
      counter = math.max(counter, tonumber(token))
      if counter > 0 then fence_store(KEYS[i], counter, life_ms) end
    end
  end
end
