-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks [, the guard] [, the n counters]
-- ARGV n, owner [, guard as read or '', token or '', the counters' life in ms [, 'silent' or 'deleted' [, ms]]]
-- Deletes each lock that is ours, whatever the guard is and whoever holds the others, and notifies the waiters of all
-- n; 'deleted': of the deleted ones only; 'silent': of none. With ms it does not delete the locks: they expire after
-- so many ms. Returns 1 if all were ours, 2 if one client was notified,
-- 3 if two...; 0 if some were missing; {holder, ttl} if another owner holds one. If the guard is not as read, 'GUARD'
-- is appended: {1, 'GUARD'}, {0, 'GUARD'}, {holder, ttl, 'GUARD'}.
--@ guarded
--@ string_keep
--@ string_notice
local seen, token = ARGV[3], ARGV[4]
--@ single
if single and not lock_clear(KEYS[1]) then return 1 + notice_released(KEYS[1], ARGV[2], ARGV[6]) end
--@ get
--@ string_whose
--@ look
--@ release
