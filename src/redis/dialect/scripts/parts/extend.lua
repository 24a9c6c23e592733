-- SPDX-License-Identifier: BSD-3-Clause
local n = tonumber(ARGV[1])
local why = guard_broken(ARGV[4])
if why then return why end
local count, _, other, wrong = look_all(1, n, ARGV[2])
if wrong or other then return wrong or other end
if count < n then return 0 end
for i = 1, n do
  why = lock_lift(KEYS[i], ARGV[3])
  if why then return why end
end
if ARGV[5] and ARGV[5] ~= '' then
  --@ carry
  fence_carry(n, ARGV[5], ARGV[6])
end
return {1, clock_us() or 0}
