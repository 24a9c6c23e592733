-- SPDX-License-Identifier: BSD-3-Clause
local first, last = 1, 1
if why then return why end
--@ prolong
-- The slot is what matters: another number of permits is left as it is, and a failure to write the number is ignored.
local number = redis.pcall('GET', KEYS[2])
if number == permits then
  lock_lift(KEYS[2], lease_ms)
elseif not number then
  redis.pcall('SET', KEYS[2], permits, 'PX', lease_ms)
end
if ARGV[6] ~= '' then
  --@ carry
  fence_carry(#KEYS, #KEYS, ARGV[6], ARGV[7])
end
return {1, clock_us() or 0}
