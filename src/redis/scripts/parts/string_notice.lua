-- SPDX-License-Identifier: BSD-3-Clause
-- Tells those who wait for the key. By pcall: a channel that is denied to us must not undo an answer.
local function notice_released(key, owner)
  redis.pcall('PUBLISH', 'quorlock:released:' .. key, owner)
end
