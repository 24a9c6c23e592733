-- SPDX-License-Identifier: BSD-3-Clause
-- What the server tells of itself.

-- clock_us - return the clock in us; or nil and an error.
local function clock_us()
  local time = redis.pcall('TIME')
  if time.err then return nil, time end
  return time[1] * 1000000 + time[2]
end

-- info - return a field of INFO; nil if scripts, or this user, may not run it.
local function info(section, field)
  local text = redis.pcall('INFO', section)
  if type(text) ~= 'string' then return nil end
  return string.match(text, '\n' .. field .. ':(%w+)')
end

-- may_msetex - return whether MSETEX can be used: Redis has it since 8.4, Valkey since 9.1, and the user needs the
-- right to it. A user without that right is asked about here, so that the server logs no denial.
local function may_msetex(key)
  if (redis.VALKEY_VERSION_NUM or 0) < 0x90100 and (redis.REDIS_VERSION_NUM or 0) < 0x80400 then return false end
  local known, good = pcall(redis.acl_check_cmd, 'MSETEX', '1', key, '')
  return known and good
end
