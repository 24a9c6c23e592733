-- SPDX-License-Identifier: BSD-3-Clause
-- The owner that a hash shows, and its count: the first field, but not the one that tells a read-write lock's
-- mode, unless there is no other; nil where there is no key; nil, nil and an error.
local function hash_owner(key)
  local cursor, owner, count = '0', nil, nil
  repeat
    local part = redis.pcall('HSCAN', key, cursor)
    if part.err then return nil, nil, part end
    local fields = part[2]
    for i = 1, #fields, 2 do
      owner, count = string.sub(fields[i], 1, 4096), fields[i + 1]
      if owner ~= 'mode' then return owner, count end
    end
    cursor = part[1]
  until cursor == '0'
  return owner, count
end
