-- SPDX-License-Identifier: BSD-3-Clause
-- The strings at these keys, false where there is none, asked for at once and remembered; nil where that is refused.
local seen = {}
local function see(first, last)
  local texts = redis.pcall('MGET', unpack(KEYS, first, last))
  for i = first, last do seen[KEYS[i]] = texts[i - first + 1] or nil end
  return texts
end
-- As get.lua has it.
local function get(key)
  local text = seen[key]
  if text == nil then text = redis.pcall('GET', key) end
  return text
end
