-- SPDX-License-Identifier: BSD-3-Clause
--@ string_channel
-- Notifies the key's waiters unless `how` is silent, and returns their number. It uses pcall because the script must
-- not fail if the channel is denied to the user. `how` is nil for an ordinary release.
local function notice_released(key, owner, how)
  if how == 'silent' then return 0 end
  local sent = redis.pcall('PUBLISH', notice_channel(key), owner)
  if type(sent) ~= 'number' then return 0 end
  if sent > 0 and not how then
    --@ turn
  end
  return sent
end
