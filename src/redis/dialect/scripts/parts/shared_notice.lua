-- SPDX-License-Identifier: BSD-3-Clause
-- As string_notice.lua; string_channel.lua stands before. While a key has readers, or is reserved for some, nobody is notified.
local function notice_released(key, owner, how)
  if how == 'silent' or shared[key] and held[key] then return 0 end
  local sent = redis.pcall('PUBLISH', notice_channel(key), owner)
  if type(sent) ~= 'number' then return 0 end
  if sent > 0 and not how and not shared[key] then
    --@ turn
  end
  return sent
end
