-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the owner in a hash, and its count; nil if there is no key; nil, nil and an error. A lock has one field. If
-- there are several, the first by name is returned, because their order differs from node to node. The hash of a
-- Redisson read-write lock has the field mode and any number of owners. Its owner is the mode; 'leftover' if no owner
-- is left; 'unread' if the user may not read the mode.
local function hash_owner(key)
  local cursor, owner, count, mode = '0', nil, nil, false
  repeat
    local part = redis.pcall('HSCAN', key, cursor)
    if part.err then return nil, nil, part end
    local fields = part[2]
    for i = 1, #fields, 2 do
      if fields[i] == 'mode' then
        mode = true
      elseif not owner or fields[i] < owner then
        owner, count = fields[i], fields[i + 1]
      end
    end
    cursor = part[1]
  until owner or cursor == '0'
  if mode or owner and redis.pcall('HEXISTS', key, 'mode') == 1 then
    mode = redis.pcall('HGET', key, 'mode')
    if type(mode) == 'table' then mode = 'unread' end
    if mode == 'read' or mode == 'write' or mode == 'unread' then
      return 'RReadWriteLock:' .. (owner and mode or 'leftover'), owner and '1' or '0'
    end
    owner, count = owner or 'mode', count or mode
  end
  return owner and string.sub(owner, 1, 4096), count
end
