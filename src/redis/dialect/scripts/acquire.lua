-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks [, the guard] [, the n counters]
-- ARGV n, owner, lease in ms, guard as read or '', 'strict' or 'repair' or '', floor or token or '', the counters' life
-- in ms, max_lease in ms
-- Takes all locks or none. Returns {1, counter, clock in us or 0} if all are set, even if some were ours before (a
-- repair, or the same request again); {holder, ttl, n [, which]} if another owner holds one: the holder with the
-- longest ttl, how many clients listen for its release, and for several locks '1' for each that another owner holds,
-- else '0'.
--@ guarded
--@ clock
--@ admit
-- Where the server has MSETEX, one command sets several free locks without counters. If it is refused, no key was set,
-- and the code behind finds out why. The first key is read before, because that costs less than a refusal.
if n > 1 and ARGV[6] == '' and not redis.pcall('GET', KEYS[1]) then
  --@ msetex
  if has_msetex then
    local words = {}
    for i = 1, n do words[2 * i - 1], words[2 * i] = KEYS[i], owner end
    words[2 * n + 1], words[2 * n + 2], words[2 * n + 3] = 'NX', 'PX', lease_ms
    if redis.pcall('MSETEX', n, unpack(words)) == 1 then return {1, 0, clock_us() or 0} end
  end
end
--@ get
--@ string_whose
--@ string_set
--@ string_clear
--@ string_notice
--@ look
--@ lift
--@ attempt
