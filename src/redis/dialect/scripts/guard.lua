-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the guard, see parts/guard_text.lua
-- ARGV N, set, max_lease in ms, run_id and master_replid from the client's INFO, 'look' where it knows these not yet
-- and nothing may be written, '1' where it asked before on this connection
-- {why, rest of the quarantine in ms, max_lease, guard}: why is 'kept', 'new' (there was none) or 'lost' (another
-- process of the server wrote it); {'conflict', N, set, max_lease}: it has other settings; {'conflict', guard}: it has
-- another format; {'ask'}: it is to ask again, and not only to look.
--@ info
--@ guard_text
--@ guard_now
if run == '' or replid == '' then return {'ask'} end
if stored and not guard then return {'conflict', string.sub(stored, 1, 200)} end
local wanted = tonumber(ARGV[3])
-- Nil, or an error.
local function store()
  if ARGV[6] == 'look' then return {'ask'} end
  guard.run, guard.replid = run, replid
  stored = guard_write(guard)
  local done = redis.pcall('SET', KEYS[1], stored)
  if done.err then return done end
end
local why, changed = 'kept', guard and guard.format == '1'
if not guard then
  why, guard = 'new', {n = ARGV[1], set = ARGV[2], lease = wanted, longest = wanted, till = 0, wanted = 0, wanted_till = 0}
elseif not same_life then
  why = 'lost'
end
-- No process of a server loses its guard to another: what this client knows is from before a change of role, and it
-- connects anew. Were it to write, it would undo what a client wrote that knows better.
if why == 'lost' and ARGV[6] == '1' then return {why, 0, guard.lease, stored} end
-- A longest max_lease is kept until its quarantine is over, also over a restart of the server.
local most = guard.lease
if guard.till > now then most = math.max(most, guard.longest) end
if why ~= 'kept' then
  guard.how, guard.made, guard.cause = 'found', now, why == 'new' and 'first' or 'restart'
end
-- Longer than any lease: the server's clock was set back.
if why ~= 'kept' or guard.till > now + most + 1 then
  guard.till, guard.longest, changed = now + most + 1, most, true
end
if guard.wanted_till > now + guard.wanted + 1 then guard.wanted_till, changed = now + guard.wanted + 1, true end
if guard.n ~= ARGV[1] or guard.set ~= ARGV[2] or wanted ~= guard.lease then
  -- This client's leases may be longer than the guard allows for. It has had no vote since the guard was made, so none
  -- can run after that time and its max_lease; and none at all where a person declared that. So a client with wrong
  -- settings delays nobody for longer than safety needs.
  local last = guard.made + wanted + 1
  if wanted > guard.lease and guard.how == 'found' and last > math.max(now, guard.till, guard.wanted_till) then
    guard.wanted, guard.wanted_till = wanted, last
    local failed = store()
    if failed then return failed end
  end
  return {'conflict', guard.n, string.sub(guard.set, 1, 200), string.format('%.0f', guard.lease)}
end
if changed then
  local failed = store()
  if failed then return failed end
end
return {why, math.max(0, guard.till - now, guard.wanted_till - now), guard.lease, stored}
