-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks [, the guard] [, the n counters]
-- ARGV n, owner, ms [, guard as read or '', token or '', the counters' life in ms [, how [, the prefix]]]
-- Deletes each lock that is ours, whatever the guard is and whoever holds the others, and notifies the waiters of all
-- n; how 'deleted': of the deleted ones only; 'silent': of none. 'keep': as 'silent', but it does not delete the locks:
-- they expire after so many ms, and their value is quorlock:kept: and the owner. Returns 1 if all were ours, 2 if one
-- client was notified, 3 if two...; 0 if some were missing; {holder, ttl} if another owner holds one. If the guard is
-- not as read, 'GUARD' is appended: {1, 'GUARD'}, {0, 'GUARD'}, {holder, ttl, 'GUARD'}. Rules 2.2, 2.10 and
-- 10.1.
local n, owner, keep_ms, seen, token, life_ms, how, prefix = unpack(ARGV)
--@ from guard: guard_broken
--@ from string: lock_clear, notice_released
local fenced, broken = token and token ~= '', guard_broken(KEYS[n + 1], seen)
local clear = lock_clear
if how == 'keep' then
  --@ from string: lock_keep
  clear = function(key) return lock_keep(key, owner, keep_ms) end
end
-- Most releases are for one lock that is ours, while the guard is as read and the counter, if there is one, equals the
-- token. They are done first, without the functions that the others need, because even a function that is not called
-- costs time.
local single = n == '1' and not broken and redis.pcall('GET', KEYS[1]) == owner
  and (not fenced or redis.pcall('GET', KEYS[#KEYS]) == token)
if single and not clear(KEYS[1]) then
  return 1 + notice_released(KEYS[1], owner, how)
end
n = tonumber(n)
local carry
if fenced then
  --@ from fence: fence_carry
  carry = function() fence_carry(KEYS, #KEYS - n + 1, #KEYS, token, life_ms) end
end
--@ from string: lock_whose
-- A key that its owner has released, and that is kept, is still that owner's when the release comes again.
local function whose_kept(key, of)
  local holder = lock_whose(key, of)
  return holder == 'quorlock:kept:' .. of or holder
end
--@ from locks: give_back
return give_back(whose_kept, clear, notice_released, KEYS, 1, n, owner, how, broken and 'GUARD', carry)
