-- SPDX-License-Identifier: BSD-3-Clause
-- An acquire of one lock of a batch.
--@ fence
--@ highest
--@ next
local moved, max_lease_ms = lost, tonumber(ARGV[7])
if not moved and ARGV[5] == 'strict' then
  --@ moved
  moved = guard_moved(ARGV[3])
end
local function acquire(i, owner)
  local first, last, why, floor, how = i, i, moved, fenced and token_of(i), nil
  if why then return why end
  --@ take
end
-- The same as travel(reply) for a grant, but faster.
local front, back = '*3\r\n:1\r\n:', '\r\n' .. travel(now_us or 0)
