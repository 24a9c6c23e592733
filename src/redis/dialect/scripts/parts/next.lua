-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the counter of a grant: the next number, and at least the floor. A repair has its token already.
local function fence_next(counter, how, floor, now_us, max_lease_ms)
  local least = tonumber(floor)
  if how == 'repair' then return math.max(counter, least) end
  -- A client whose clock is far ahead must not use up the numbers.
  local most = now_us + max_lease_ms * 500
  if least <= counter or least > most then return math.max(counter + 1, math.min(least, most)) end
  -- Usually the result is the floor, whose digits are known.
  text_of, text = least, floor
  return least
end
