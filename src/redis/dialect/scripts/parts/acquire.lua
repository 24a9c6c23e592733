-- SPDX-License-Identifier: BSD-3-Clause
local n, owner, lease_ms, how = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[5]
local why = guard_broken(ARGV[4])
if not why and how == 'strict' then
  --@ moved
  why = guard_moved(ARGV[4])
end
if why then return why end
local first, last, away, now_us = 1, n, #KEYS - n, nil
local floor, life_ms, max_lease_ms = ARGV[6] ~= '' and ARGV[6], ARGV[7], ARGV[8]
--@ fence
--@ highest
--@ next
--@ take
