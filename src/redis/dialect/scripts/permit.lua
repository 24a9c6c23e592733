-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS a slot, the number of permits [, the guard] [, the slot's counter]
-- ARGV 2, owner, what to do, lease in ms, guard as seen or '', floor or token or '', the counter's life in ms, the number
-- of permits, how, 'any' or '', and to acquire: for each slot '1' where it is passed over, else '0', and max_lease in ms
-- acquire, how: 'strict' or 'repair' or '': that slot, or with 'any' the first from it on, and round, that is free and
-- not passed over. {1, counter, clock in us or 0, slot}: it is set, also where it was ours before; {holder, ttl, n, free,
-- first}: the holder of the slot asked for, how many clients listen for a release of the name, for each slot '1' where it
-- is free, and the ttl of the lease that ends first of those not passed over, or -1. A value that is no slot is passed
-- over, too: it is not free, and an error where no slot is one, or for 'repair'. Where no slot is held the holder says so.
-- extend: {1, clock in us or 0}: extended; 0: the slot is missing; {holder, ttl}: it is another owner's.
-- release, how: 'silent' or 'deleted' or '': deletes the slot where it is ours; with 'any' whichever is, for a request to
-- acquire that did not say which it took. Notifies the waiters of the name; deleted: only where the slot was ours;
-- silent: never. The replies are those of release.lua.
-- One script for all: a server that was asked for a permit knows how to give it back.
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
local owner, lease_ms, permits, how, any = ARGV[2], ARGV[4], ARGV[8], ARGV[9], ARGV[10] == 'any'
local why = guard_broken(ARGV[5])
if ARGV[3] == 'acquire' then
  --@ permit_acquire
elseif ARGV[3] == 'extend' then
  --@ permit_extend
end
--@ permit_release
