-- SPDX-License-Identifier: BSD-3-Clause
local first, last, owner, how = 1, tonumber(ARGV[1]), ARGV[2], ARGV[6]
local broken = guard_broken(ARGV[3]) and 'GUARD'
local count, ours, other, wrong = look_all(first, last, owner)
if count > 0 and ARGV[4] and ARGV[4] ~= '' then
  --@ carry
  fence_carry(#KEYS - last + 1, #KEYS, ARGV[4], ARGV[5])
end
--@ give_back
