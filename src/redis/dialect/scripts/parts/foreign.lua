-- SPDX-License-Identifier: BSD-3-Clause
-- The error of a command on a value of another type, with that type where the user may ask for it. Any other error
-- stays as it is.
local function foreign(key, why)
  local kind = string.find(why.err, 'WRONGTYPE', 1, true) and redis.pcall('TYPE', key)
  return kind and kind.ok and redis.error_reply('WRONGTYPE ' .. kind.ok) or why
end
