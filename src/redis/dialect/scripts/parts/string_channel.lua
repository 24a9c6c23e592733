-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the channel of the key's waiters.
local function notice_channel(key)
  return 'quorlock:released:' .. key
end
