-- SPDX-License-Identifier: BSD-3-Clause
-- A field of INFO; nil where scripts, or this user, may not ask for it.
local function info(section, field)
  local text = redis.pcall('INFO', section)
  if type(text) ~= 'string' then return nil end
  return string.match(text, '\n' .. field .. ':(%w+)')
end
