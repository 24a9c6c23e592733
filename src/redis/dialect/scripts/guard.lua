-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the guard
-- ARGV N, set, max_lease in ms, run_id and master_replid from the client's INFO, '1' where it asked before on this
-- connection
-- The guard: 1|N|set|max_lease|run_id|master_replid|end of the quarantine in ms[|longest max_lease that a
-- quarantine was for in this process of the server]
-- {why, rest of the quarantine in ms, max_lease, guard}: why is 'kept', 'new' (there was none) or 'lost' (another
-- process of the server wrote it); {'conflict', N, set, max_lease}: it has other settings; {'conflict', guard}: it has
-- another format.
--@ info
local run = info('server', 'run_id') or ARGV[4]
local replid = info('replication', 'master_replid') or ARGV[5]
local time = redis.pcall('TIME')
if time.err then return time end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' then return stored end
-- Nil, or an error.
local function store(n, set, lease, till, most)
  stored = string.format('1|%s|%s|%.0f|%s|%s|%.0f', n, set, lease, run, replid, till)
  if most > lease then stored = stored .. string.format('|%.0f', most) end
  local done = redis.pcall('SET', KEYS[1], stored)
  if done.err then return done end
end
local pattern = '^1|(%d+)|(.-)|(%d+)|([^|]*)|([^|]*)|(%d+)|?(%d*)$'
local n, set, lease, old_run, old_replid, till, longest = string.match(stored or '', pattern)
if stored and not n then return {'conflict', string.sub(stored, 1, 200)} end
local wanted = tonumber(ARGV[3])
lease, till = tonumber(lease) or wanted, tonumber(till) or 0
local why = 'kept'
if not n then
  why = 'new'
elseif old_run ~= run or old_replid ~= replid then
  why = 'lost'
end
-- A longest max_lease is kept until its quarantine is over, also over a restart of the server.
local most = lease
if longest and longest ~= '' and (till > now or why == 'kept') then most = math.max(lease, tonumber(longest)) end
if n and (n ~= ARGV[1] or set ~= ARGV[2] or wanted ~= lease) then
  -- The client that wrote it had a shorter max_lease: our leases may still run. Only once in a process of the
  -- server, so that one client with wrong settings does not delay all others for ever.
  if wanted > most then
    local failed = store(n, set, lease, math.max(till, now + wanted + 1), wanted)
    if failed then return failed end
  end
  return {'conflict', n, string.sub(set, 1, 200), string.format('%.0f', lease)}
end
-- No process of a server loses its guard to another: what this client knows is from before a change of role, and it
-- connects anew. Were it to write, it would undo what a client wrote that knows better.
if why == 'lost' and ARGV[6] == '1' then return {why, 0, lease, stored} end
-- Longer than any lease: the server's clock was set back.
if till <= now then most = lease end
if why ~= 'kept' or till > now + most + 1 then
  till = now + most + 1
  local failed = store(ARGV[1], ARGV[2], lease, till, most)
  if failed then return failed end
end
return {why, math.max(0, till - now), lease, stored}
