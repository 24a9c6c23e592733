-- SPDX-License-Identifier: BSD-3-Clause
local function notice_tagged(prefix, key)
  return prefix .. (string.find(key, '{', 1, true) and key or '{' .. key .. '}')
end
-- Returns the channel of the key's waiters.
local function notice_channel(key)
  return notice_tagged('redisson_lock__channel:', key)
end
