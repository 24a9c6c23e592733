-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the error for a value of another type, with the type if the user may ask for it. Other errors are returned as
-- they are.
local function foreign(key, why)
  local kind = string.find(why.err, 'WRONGTYPE', 1, true) and redis.pcall('TYPE', key)
  return kind and kind.ok and redis.error_reply('WRONGTYPE ' .. kind.ok) or why
end
