-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the guard, see modules/guard.lua
-- ARGV N, set, max_lease in ms, run_id and master_replid from the client's INFO, and: 'look' if the client does not
-- know these two yet and nothing may be written, '1' if it has read the guard on this connection before, else '0'
-- Returns {why, rest of the quarantine in ms, max_lease, guard}, where why is 'kept', 'new' (there was none) or 'lost'
-- (another process of the server wrote it); {'conflict', N, set, max_lease} if the guard has other settings;
-- {'conflict', guard} if it has another format; {'ask'} if the client must ask again, without 'look'.
local n, set, lease, run, replid, knows = unpack(ARGV)
--@ from guard: guard_own_memory, guard_now, guard_write
local failed, guard, stored, now, same_life
failed, guard, stored, now, same_life, run, replid = guard_now(KEYS[1], run, replid)
if failed then return failed end
if run == '' or replid == '' then return {'ask'} end
if stored and not guard then return {'conflict', string.sub(stored, 1, 200)} end
local wanted = tonumber(lease)
-- Returns nil, or an error.
local function store()
  if knows == 'look' then return {'ask'} end
  guard.run, guard.replid = run, replid
  stored = guard_write(guard)
  local done = redis.pcall('SET', KEYS[1], stored)
  if done.err then return done end
end
-- Rule 4.1.
local why, changed = 'kept', guard and guard.format == '1'
if not guard then
  why, guard = 'new', {n = n, set = set, lease = wanted, longest = wanted, till = 0, wanted = 0, wanted_till = 0}
elseif not same_life then
  why = 'lost'
end
-- Rule 4.11: a running server process cannot lose its guard to another process. So this client's INFO is from before a
-- change of role, and it must connect again. If it wrote the guard now, it would undo what a better informed client
-- wrote.
if why == 'lost' and knows == '1' then return {why, 0, guard.lease, stored} end
-- Rule 4.2: the longest max_lease is kept until its quarantine ends, even if the server restarts.
local most = guard.lease
if guard.till > now then most = math.max(most, guard.longest) end
-- Rule 4.15.
local same_run = why == 'lost' and guard.run == run
if same_run and guard_own_memory() then why, changed = 'kept', true end
if why ~= 'kept' then
  guard.how, guard.made, guard.cause = 'found', now, why == 'new' and 'first' or same_run and 'replication' or 'restart'
end
-- Rules 4.2 and 4.4. A quarantine longer than any lease: the server's clock was set back.
if why ~= 'kept' or guard.till > now + most + 1 then
  guard.till, guard.longest, changed = now + most + 1, most, true
end
if guard.wanted_till > now + guard.wanted + 1 then guard.wanted_till, changed = now + guard.wanted + 1, true end
-- Rules 4.5 and 4.6.
if guard.n ~= n or guard.set ~= set or wanted ~= guard.lease then
  -- Rule 4.7: this client's leases may be longer than the guard allows for. It was granted none since the guard was
  -- made, so its last lease ends max_lease after that; and it has no such lease if a person declared so. A client
  -- with wrong settings therefore delays nobody for longer than safety needs.
  local last = guard.made + wanted + 1
  if wanted > guard.lease and guard.how == 'found' and last > math.max(now, guard.till, guard.wanted_till) then
    guard.wanted, guard.wanted_till = wanted, last
    failed = store()
    if failed then return failed end
  end
  return {'conflict', guard.n, string.sub(guard.set, 1, 200), string.format('%.0f', guard.lease)}
end
if changed then
  failed = store()
  if failed then return failed end
end
return {why, math.max(0, guard.till - now, guard.wanted_till - now), guard.lease, stored}
