-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the reply in wire format, as if it were the reply of a whole script.
local function travel(reply)
  if type(reply) == 'number' then return string.format(':%.0f\r\n', reply) end
  if type(reply) == 'string' then return '$' .. #reply .. '\r\n' .. reply .. '\r\n' end
  if reply.err then return '-' .. string.gsub(string.gsub(reply.err, '^%-', ''), '[\r\n]', ' ') .. '\r\n' end
  local parts = {'*' .. #reply .. '\r\n'}
  for i = 1, #reply do parts[i + 1] = travel(reply[i]) end
  return table.concat(parts)
end
