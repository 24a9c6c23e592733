-- SPDX-License-Identifier: BSD-3-Clause
-- Returns how many clients listen for a release of the first key; -1 if the user may not ask; nil unless it is wanted.
local function count_waiters(wanted)
  if not wanted then return nil end
  local heard = redis.pcall('PUBSUB', 'NUMSUB', notice_channel(KEYS[1]))
  return heard.err and -1 or heard[2]
end
