-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the guard, see modules/guard.lua
-- ARGV N, set, max_lease in ms, run_id and master_replid from the client's INFO, how, and the longest max_lease that
-- any of the nodes was set up with, in ms
-- how: 'new' writes a guard if there is none, or one of the same set from a first contact whose quarantine still lasts;
-- 'over' replaces any guard; 'end' ends the quarantine for a client with a longer max_lease than the guard's.
-- Returns 'written:' and the guard, or 'guarded:' and the value that is stored, which may be no guard.
local n, set, lease, run, replid, how, longest = unpack(ARGV)
--@ from guard: guard_now, guard_write
local failed, guard, stored, now, same_life
failed, guard, stored, now, same_life, run, replid = guard_now(KEYS[1], run, replid)
if failed then return failed end
lease = tonumber(lease)
local fits = guard and guard.n == n and guard.set == set
local new = {n = n, set = set, lease = lease, run = run, replid = replid, till = 0, longest = lease,
  how = 'declared', made = now, cause = 'none', wanted = 0, wanted_till = 0}
-- Rule 4.12.
if how == 'new' then
  if stored and not (fits and same_life and guard.cause == 'first' and guard.till > now) then
    return 'guarded:' .. string.sub(stored, 1, 400)
  end
elseif stored and not guard or how == 'end' and not (fits and guard.lease == lease) then
  return 'guarded:' .. string.sub(stored or '', 1, 400)
elseif how == 'end' then
  -- The other quarantine stays: the server may have lost its data.
  new = guard
  new.how, new.made, new.wanted, new.wanted_till = 'declared', now, 0, 0
else
  -- Rule 4.13: leases of the old length may still run. The new quarantine also covers the rest of an earlier one, which
  -- was for at most the longest max_lease.
  local most = math.max(lease, tonumber(longest), guard and guard.lease or 0)
  if guard and guard.till > now then most = math.max(most, guard.longest) end
  new.till, new.longest, new.how, new.cause = now + most + 1, most, 'found', 'reconfigure'
  -- What the old guard knew of still longer leases is kept.
  if same_life then new.how, new.made = guard.how, guard.made end
  if guard and guard.wanted_till > new.till then new.wanted, new.wanted_till = guard.wanted, guard.wanted_till end
end
local text = guard_write(new)
local done = redis.pcall('SET', KEYS[1], text)
if done.err then return done end
return 'written:' .. text
