-- SPDX-License-Identifier: BSD-3-Clause
-- Runs one step of SCAN, and returns {next cursor, locks}: a line for each lock among the keys of this step with a
-- letter (x: a key, r: readers, s: a slot), a number (of readers; of permits), ms left, the lengths of key and holder,
-- and both. d: a key that the user may not read. {'', ''}: the reply would be too long, so ask for fewer keys.
-- lock_at returns letter, number and holder; nil if the key is not a lock; nil and an error.
local function list(kind, longest, lock_at)
  local page = redis.pcall('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3], 'TYPE', kind)
  if page.err then return page end
  local lines, size = {}, 0
  for _, key in ipairs(page[2]) do
    local letter, number, holder, left
    if #key <= longest then
      letter, number, holder = lock_at(key)
    end
    if letter then
      left = redis.pcall('PTTL', key)
      if type(left) == 'table' then letter, number = nil, left end
    end
    if not letter and number then
      -- The first denial that is about a command, and not about this key, ends the listing.
      if not string.find(number.err, 'access', 1, true) then return number end
      letter, number, holder, left = 'd', 0, '', -2
    end
    if letter and left ~= -2 or letter == 'd' then
      local line = string.format('%s %d %.0f %d %d ', letter, number, left, #key, #holder) .. key .. holder .. '\n'
      lines[#lines + 1], size = line, size + #line
    end
  end
  if size > 200000 then return {'', ''} end
  return {page[1], table.concat(lines)}
end
