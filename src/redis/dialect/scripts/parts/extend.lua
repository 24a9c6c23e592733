-- SPDX-License-Identifier: BSD-3-Clause
local first, last, owner, lease_ms = 1, tonumber(ARGV[1]), ARGV[2], ARGV[3]
local why = guard_broken(ARGV[4])
if why then return why end
--@ prolong
if ARGV[5] and ARGV[5] ~= '' then
  --@ carry
  fence_carry(#KEYS - last + 1, #KEYS, ARGV[5], ARGV[6])
end
return {1, clock_us() or 0}
