-- SPDX-License-Identifier: BSD-3-Clause
-- Errors about a key that holds something else.

-- foreign - return the error for a value of another type, with the type if the user may ask for it. Other errors are
-- returned as they are.
local function foreign(key, why)
  local kind = string.find(why.err, 'WRONGTYPE', 1, true) and redis.pcall('TYPE', key)
  return kind and kind.ok and redis.error_reply('WRONGTYPE ' .. kind.ok) or why
end

-- foreign_named - return the same for a key that the library named, with that key. `why` is of foreign().
local function foreign_named(key, why)
  local kind = string.match(why.err, 'WRONGTYPE (%S+)$')
  return kind and redis.error_reply('WRONGTYPE ' .. kind .. ' ' .. key) or why
end
