-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks [, the guard] [, the n counters]
-- ARGV n, owner, lease in ms [, guard as read or '', token or 0 or '', the counters' life in ms]
-- Extends all locks or none. Returns {1, clock in us or 0} if all are extended; 0 if some are missing; {holder, ttl} if
-- another owner holds one.
--@ guarded
--@ clock
--@ lift
local seen, token = ARGV[4], ARGV[5]
--@ single
if single and not lock_lift(KEYS[1], ARGV[3]) then
  if fenced then lock_lift(KEYS[#KEYS], ARGV[6]) end
  return {1, clock_us() or 0}
end
--@ get
--@ string_whose
--@ look
--@ extend
