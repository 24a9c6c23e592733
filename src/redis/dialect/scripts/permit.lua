-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS a slot, the number of permits [, the guard] [, the slot's counter]
-- ARGV 2, owner, what to do, lease in ms, guard as read or '', floor or token or '', the counter's life in ms, the
-- number of permits, how, 'any' or '', and to acquire: for each slot '1' to skip it, else '0', and max_lease in ms
-- acquire, how 'strict' or 'repair' or '': takes that slot, or with 'any' the first one from it on, wrapping around,
-- that is free and not skipped. Returns {1, counter, clock in us or 0, slot} if it is set, even if it was ours before;
-- else {holder, ttl, n, free, first}: the holder of the slot asked for, how many clients listen for a release of the
-- name, for each slot '1' if it is free, and the shortest ttl of the slots that are not skipped, or -1. A value that is
-- not a slot is skipped, too: it is not free. It is an error only if no slot is one, or for 'repair'. If no slot is
-- held, such a value is named as the holder.
-- extend: returns {1, clock in us or 0} if extended; 0 if the slot is missing; {holder, ttl} if another owner holds it.
-- release, how 'silent' or 'deleted' or '': deletes the slot if it is ours; with 'any' whichever slot is ours, for an
-- acquire whose reply did not arrive. Notifies the waiters of the name; deleted: only if the slot was ours; silent:
-- never. Returns the same as release.lua.
-- One script for all three: a server that has it for an acquire also has it for the release.
--@ get
--@ guarded
--@ clock
--@ string_whose
--@ string_set
--@ string_clear
--@ string_notice
--@ look
--@ lift
--@ slot
local owner, lease_ms, permits, how, any, passed = ARGV[2], ARGV[4], ARGV[8], ARGV[9], ARGV[10] == 'any', ARGV[11]
local why = guard_broken(ARGV[5])
if ARGV[3] == 'acquire' then
  --@ permit_acquire
elseif ARGV[3] == 'extend' then
  --@ permit_extend
end
--@ permit_release
