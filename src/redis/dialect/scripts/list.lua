-- SPDX-License-Identifier: BSD-3-Clause
-- ARGV cursor, pattern, count [, the prefix]
-- Lists locks, readers and slots among the keys of one step: see modules/listing.lua. A lock is a string with the form
-- of an owner token: a label of 1 to 64 printable characters and a colon, or neither if the key expires; and 40 hex
-- digits. quorlock:kept: may stand before it. Another string that expires may be a lock of another program. One that does
-- not expire is listed as a lock where locks of that name had tokens, or it is a slot: it is in their way for ever. At most
-- 120 bytes of a value are read, so that large values cost nothing.
local cursor, pattern, count, prefix = unpack(ARGV)
--@ from listing: list
--@ from names: name_of
local front, now = prefix or '', nil
return list(cursor, pattern, count, 'string', 2048, function(key)
  local rest = string.sub(key, #front + 1)
  local slot, name = string.match(rest, '^quorlock:slot:(%d%d?):(.+)$')
  if not slot and string.sub(rest, 1, 9) == 'quorlock:' then return nil end
  local value = redis.pcall('GETRANGE', key, '0', '119')
  if type(value) == 'table' then return nil, value end
  if value == 'quorlock:readers' and not slot then
    now = now or redis.pcall('TIME')
    if now.err then return nil, now end
    local after = string.format('(%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
    local readers = redis.pcall('ZCOUNT', name_of('quorlock:readers:', key), after, '+inf')
    if type(readers) == 'table' then return nil, readers end
    -- Without readers the key is kept for those that come next, or is about to expire.
    if readers == 0 then return nil end
    return 'r', readers, value
  end
  local token = string.match(value, '^quorlock:kept:(.*)$') or value
  local label = string.sub(token, 1, -41)
  local foreign = #token < 40 or #token > 105 or string.find(value, '[^0-9a-f]', -40) or
    label ~= '' and not string.find(label, '^[!-~]+:$')
  if foreign or label == '' then
    local stays = redis.pcall('PTTL', key) == -1
    if stays and not slot and type(redis.pcall('GET', name_of('quorlock:fence:', key))) ~= 'string' then return nil end
    if foreign and not stays then
      if slot then return nil end
      return 'o', 0, ''
    end
  end
  local kept = slot and redis.pcall('GET', front .. 'quorlock:permits:' .. name)
  local permits = type(kept) == 'string' and string.match(kept, '^%d%d?$')
  return slot and 's' or 'x', tonumber(permits or 0), value
end)
