-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the state of a lock, a hash. Nil: free; true: ours; a string: the holder, with its count as the third value;
-- a table: an error.
local function lock_whose(key, owner)
  local why = owner and redis.pcall('HEXISTS', key, owner)
  if why == 1 then return true end
  local holder, count
  if type(why) ~= 'table' then
    holder, count, why = hash_owner(key)
  end
  if why then
    --@ foreign
    return foreign(key, why)
  end
  return holder, nil, count
end
