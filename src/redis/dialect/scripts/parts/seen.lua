-- SPDX-License-Identifier: BSD-3-Clause
-- Reads the strings at these keys with one command; false for a missing key; nil if the command is refused.
local reads, seen = {}, nil
local function see(first, last)
  local texts = redis.pcall('MGET', unpack(KEYS, first, last))
  reads[#reads + 1] = {first, texts}
  return texts
end
-- What was read, by key: most batches do not need it.
local function seen_texts()
  if seen then return seen end
  seen = {}
  for _, read in ipairs(reads) do
    for i, text in ipairs(read[2]) do seen[KEYS[read[1] + i - 1]] = text or nil end
  end
  return seen
end
-- The same as in get.lua, from the cache.
local function get(key)
  local text = seen_texts()[key]
  if text == nil then text = redis.pcall('GET', key) end
  return text
end
