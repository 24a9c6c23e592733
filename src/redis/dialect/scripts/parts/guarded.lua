-- SPDX-License-Identifier: BSD-3-Clause
-- Returns an error if the guard is not the one that this connection read; nil if it is, or if none is kept. Its key is
-- behind the locks.
local function guard_broken(seen)
  if not seen or seen == '' or redis.pcall('GET', KEYS[ARGV[1] + 1]) == seen then return nil end
  return redis.error_reply('GUARD the guard changed or is gone: the server may have lost its memory')
end
