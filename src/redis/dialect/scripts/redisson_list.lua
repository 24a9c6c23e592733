-- SPDX-License-Identifier: BSD-3-Clause
-- ARGV cursor, pattern, count
-- As list.lua, for hashes: a lock has one field, an owner of Redisson; a read-write lock has the field mode.
local cursor, pattern, count = unpack(ARGV)
--@ from listing: list
return list(cursor, pattern, count, 'hash', 2048, function(key)
  local fields = redis.pcall('HLEN', key)
  if type(fields) == 'table' then return nil, fields end
  if fields > 1 then
    local mode = redis.pcall('HGET', key, 'mode')
    if type(mode) == 'table' then return nil, mode end
    if mode == 'read' or mode == 'write' then return mode == 'read' and 'r' or 'x', 0, 'RReadWriteLock:' .. mode end
    return nil
  end
  local owners = redis.pcall('HKEYS', key)
  if owners.err then return nil, owners end
  local hex, number = string.match(owners[1] or '', '^([0-9a-f-]+):(%d+)$')
  if not hex or #hex ~= 36 or #number > 19 then return nil end
  return 'x', 0, owners[1]
end)
