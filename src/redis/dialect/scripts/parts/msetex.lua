-- SPDX-License-Identifier: BSD-3-Clause
-- Returns whether MSETEX can be used: Redis has it since 8.4, Valkey since 9.1, and the user needs the right to it. A
-- user without that right is asked about here, so that the server logs no denial.
local function has_msetex()
  if (redis.VALKEY_VERSION_NUM or 0) < 0x90100 and (redis.REDIS_VERSION_NUM or 0) < 0x80400 then return false end
  local known, good = pcall(redis.acl_check_cmd, 'MSETEX', '1', KEYS[1], '')
  return known and good
end
-- Sets each key of the table to the text behind it; returns whether that was done. No key is set if it was not.
local function set_all(words, ...)
  local n = #words
  for _, option in ipairs({...}) do words[#words + 1] = option end
  return n == 0 or redis.pcall('MSETEX', n / 2, unpack(words)) == 1
end
