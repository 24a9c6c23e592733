-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks [, the guard] [, the n counters]
-- ARGV n, owner, lease in ms, guard as read or '', floor or token or '', the counters' life in ms, 'strict' or 'repair'
-- or '', max_lease in ms [, the prefix]
-- Takes all locks or none. Returns {1, counter, clock in us or 0} if all are set, even if some were ours before (a
-- repair, or the same request again); {holder, ttl, n [, which]} if another owner holds one: the holder with the
-- longest ttl, how many clients listen for its release, and for several locks '1' for each that another owner holds,
-- else '0'. Rules 1.14 and 4.10.
local n, owner, lease_ms, seen, token, life_ms, how, max_lease_ms, prefix = unpack(ARGV)
n = tonumber(n)
--@ from guard: guard_refuses
local why = guard_refuses(KEYS[n + 1], seen, how)
if why then return why end
--@ from server: clock_us
-- Where the server has MSETEX, one command sets several free locks without counters. If it is refused, no key was set,
-- and the code behind finds out why. The first key is read before, because that costs less than a refusal.
if n > 1 and token == '' and not redis.pcall('GET', KEYS[1]) then
  --@ from server: may_msetex
  if may_msetex(KEYS[1]) then
    local words = {}
    for i = 1, n do words[2 * i - 1], words[2 * i] = KEYS[i], owner end
    words[2 * n + 1], words[2 * n + 2], words[2 * n + 3] = 'NX', 'PX', lease_ms
    if redis.pcall('MSETEX', n, unpack(words)) == 1 then return {1, 0, clock_us() or 0} end
  end
end
--@ from string: lock_whose, lock_set, lock_clear, notice_channel
--@ from fence: fence_count
--@ from locks: lock_lift, take
local count = fence_count(KEYS, n, token, life_ms, how, max_lease_ms)
return take(lock_whose, lock_set, lock_lift, lock_clear, notice_channel, KEYS, 1, n, owner, lease_ms, clock_us, count)
