-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the clock in us; or nil and an error.
local function clock_us()
  local time = redis.pcall('TIME')
  if time.err then return nil, time end
  return time[1] * 1000000 + time[2]
end
