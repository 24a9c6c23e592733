-- SPDX-License-Identifier: BSD-3-Clause
-- Whose the lock is, a hash. Nil: nobody's; true: ours; a string: the holder, and its count; a table: an error.
local function lock_whose(key, owner)
  local ours = owner and redis.pcall('HEXISTS', key, owner)
  if type(ours) == 'table' then return ours end
  if ours == 1 then return true end
  local holder, count, why = hash_owner(key)
  return why or holder, count
end
