-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the state of a lock. Nil: free for its mode; true: ours; a string: who blocks it, and if that is a waiting
-- client, for how long yet; a table: an error. Rule 8.1.
local function lock_whose(key, owner)
  local holder = redis.pcall('GET', key)
  if type(holder) == 'table' then
    --@ foreign
    return foreign(key, holder)
  end
  held[key] = holder
  if not shared[key] or holder and holder ~= sentinel then
    if not holder then return nil end
    return holder == owner or string.sub(holder, 1, 4096)
  end
  if holder then
    local till = redis.pcall('ZSCORE', readers_of(key), owner)
    if type(till) == 'table' then return till end
    if till and tonumber(till) > now then return true end
  end
  if waits_before then return waits_before(key) end
end
