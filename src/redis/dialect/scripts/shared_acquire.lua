-- SPDX-License-Identifier: BSD-3-Clause
-- As acquire.lua, for keys some of which are shared; with the floor 'read' the counters are returned, but not changed.
-- ARGV from 9 on: the waiter's name, or '' if it does not wait, how many us it has waited, the modes as in
-- modules/shared.lua [, the prefix]
local n, owner, lease_ms, seen, token, life_ms, how, max_lease_ms, waiter, waited_us, modes, prefix = unpack(ARGV)
n = tonumber(n)
--@ from shared: shared_locks, shared_whose, shared_set, shared_lift, shared_clear, shared_channel
local locks, request = shared_locks(KEYS, n, modes)
if not locks then return request end
-- Rule 8.4: a reader that holds the lock may repair it, whoever waits.
if how ~= 'repair' then
  --@ from intents: waits_before
  request.waiter, request.waited_us, request.waits = waiter, tonumber(waited_us), waits_before
end
--@ from guard: guard_refuses
local why = guard_refuses(KEYS[n + 1], seen, how)
if why then return why end
local function clock() return request.us end
--@ from fence: fence_count
--@ from locks: take
local count = fence_count(KEYS, n, token, life_ms, how, max_lease_ms)
return take(shared_whose, shared_set, shared_lift, shared_clear, shared_channel, locks, 1, n, owner, lease_ms, clock,
  count)
