-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the state of a lock, a string. Nil: free; true: ours; a string: the holder; a table: an error.
local function lock_whose(key, owner)
  local holder = get(key)
  if type(holder) == 'table' then
    --@ foreign
    return foreign(key, holder)
  end
  if not holder then return nil end
  return holder == owner or string.sub(holder, 1, 4096)
end
