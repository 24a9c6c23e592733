-- SPDX-License-Identifier: BSD-3-Clause
-- {1, counter, clock in us}: the counter is the token, or higher; or an error.
local function fence_raise(key, token, life_ms)
  local now_us, why = clock_us()
  if not now_us then return why end
  local counter
  counter, why = fence_read(key)
  if not counter then return why end
  -- An acknowledgement with a counter that is higher would let two grants share a token.
  if counter <= tonumber(token) then
    counter = tonumber(token)
    why = fence_store(key, counter, life_ms)
    if why then return why end
  end
  return {1, counter, now_us}
end
