-- SPDX-License-Identifier: BSD-3-Clause
-- What a lock about to be set gets: its counter, 0 where none is asked for, and the clock in us; or nil and an
-- error. Comes before the lock: where memory is short, no lock without its counter stays.
local function fence_count(key, repairs, floor, life_ms, max_lease_ms)
  local now_us, why = clock_us()
  if not now_us then return nil, why end
  if floor == '' then return 0, now_us end
  local counter
  counter, why = fence_read(key)
  if not counter then return nil, why end
  if repairs then
    counter = math.max(counter, tonumber(floor))
  else
    -- A client whose clock is far ahead must not use up the numbers.
    counter = math.max(counter + 1, math.min(tonumber(floor), now_us + tonumber(max_lease_ms) * 500))
  end
  why = counter > 0 and fence_store(key, counter, life_ms)
  if why then return nil, why end
  return counter, now_us
end
