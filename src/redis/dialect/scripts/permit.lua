-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS a slot, the number of permits [, the guard] [, the slot's counter]
-- ARGV 1, owner, lease in ms, guard as read or '', floor or token or '', the counter's life in ms, how, max_lease in
-- ms, what to do, the number of permits, 'any' or '', for each slot '1' to skip it, else '0' [, the prefix]
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
-- One script for all three: a server that has it for an acquire also has it for the release. Rules 2.2, 3.1 and 7.1.
local _, owner, lease_ms, seen, token, life_ms, how, max_lease_ms, what, permits, any, passed, prefix = unpack(ARGV)
--@ from names: slot_asked
local asked, name = slot_asked(KEYS[1])
any = any == 'any'
if what == 'acquire' then
  --@ from guard: guard_refuses
  --@ from slot: slot_acquire
  return guard_refuses(KEYS[3], seen, how)
    or slot_acquire(KEYS[2], name, asked, owner, lease_ms, token, life_ms, how, max_lease_ms, permits, any, passed)
end
--@ from guard: guard_broken
--@ from string: lock_whose
local why = guard_broken(KEYS[3], seen)
if what == 'extend' then
  --@ from server: clock_us
  --@ from locks: lock_lift, prolong
  why = why or prolong(lock_whose, lock_lift, KEYS, 1, 1, owner, lease_ms)
  if why then return why end
  -- The slot is what matters: another number of permits is left as it is, and a failure to write the number is ignored.
  local number = redis.pcall('GET', KEYS[2])
  if number == permits then
    lock_lift(KEYS[2], lease_ms)
  elseif not number then
    redis.pcall('SET', KEYS[2], permits, 'PX', lease_ms)
  end
  if token ~= '' then
    --@ from fence: fence_carry
    fence_carry(KEYS, #KEYS, #KEYS, token, life_ms)
  end
  return {1, clock_us() or 0}
end
--@ from slot: slot_key
--@ from string: lock_clear, notice_released
local broken, key, whose = why and 'GUARD', KEYS[1], nil
if not any then
  whose = lock_whose(key, owner)
else
  for at = 0, permits - 1 do
    if lock_whose(slot_key(name, at), owner) == true then
      key, whose = slot_key(name, at), true
      break
    end
  end
end
local ours = whose == true
local wrong = type(whose) == 'table' and whose
if ours then
  if token ~= '' then
    --@ from fence: fence_carry
    fence_carry(KEYS, #KEYS, #KEYS, token, life_ms)
  end
  wrong = lock_clear(key)
  ours = not wrong
end
local sent = 0
if ours or not wrong and how == '' then sent = notice_released(name, owner, how) end
if wrong then return wrong end
if whose and not ours then return {whose, redis.pcall('PTTL', key), broken} end
local all = ours and 1 + sent or 0
return broken and {all, broken} or all
