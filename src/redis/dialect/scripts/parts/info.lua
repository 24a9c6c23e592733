-- SPDX-License-Identifier: BSD-3-Clause
-- Returns a field of INFO; nil if scripts, or this user, may not run it.
local function info(section, field)
  local text = redis.pcall('INFO', section)
  if type(text) ~= 'string' then return nil end
  return string.match(text, '\n' .. field .. ':(%w+)')
end
