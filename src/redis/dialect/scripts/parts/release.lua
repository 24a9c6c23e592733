-- SPDX-License-Identifier: BSD-3-Clause
local n, owner = tonumber(ARGV[1]), ARGV[2]
local broken = guard_broken(ARGV[3]) and 'GUARD'
local count, ours, other, wrong = look_all(n, owner)
if count > 0 and ARGV[4] and ARGV[4] ~= '' then
  --@ carry
  fence_carry(n, ARGV[4], ARGV[5])
end
for i = 1, n do
  local why = ours[i] and lock_clear(KEYS[i], owner)
  if why then
    wrong, ours[i] = wrong or why, nil
  end
end
local told = 0
for i = 1, n do
  if ours[i] or not (wrong or ARGV[6]) then
    told = math.max(told, notice_released(KEYS[i], owner, ARGV[6] == 'silent'))
  end
end
if wrong then return wrong end
if other then return {other[1], other[2], broken} end
local all = count == n and 1 + told or 0
return broken and {all, broken} or all
