-- SPDX-License-Identifier: BSD-3-Clause
-- Reads the strings at these keys with one command, and caches them; false for a missing key; nil if the command is
-- refused.
local seen = {}
local function see(first, last)
  local texts = redis.pcall('MGET', unpack(KEYS, first, last))
  for i = first, last do seen[KEYS[i]] = texts[i - first + 1] or nil end
  return texts
end
-- The same as in get.lua, from the cache.
local function get(key)
  local text = seen[key]
  if text == nil then text = redis.pcall('GET', key) end
  return text
end
