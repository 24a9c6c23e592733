-- SPDX-License-Identifier: BSD-3-Clause
-- Returns an error if the guard names another process of the server; nil if it does not, or INFO is denied.
--@ info
local function guard_moved(seen)
  local run, replid = info('server', 'run_id'), info('replication', 'master_replid')
  if not run or not replid or string.find(seen, '|' .. run .. '|' .. replid .. '|', 1, true) then return nil end
  return redis.error_reply('GUARD another server than before answers: it may not have our locks')
end
