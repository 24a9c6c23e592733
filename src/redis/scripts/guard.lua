-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the guard
-- ARGV N, set, max_lease in ms or 0 for what is there, run_id and master_replid as INFO told the client, and the
-- max_lease to write where ARGV has none and nothing is there, 0 where that is not known either
-- The guard: 1|N|set|max_lease|run_id|master_replid|end of the quarantine in ms[|longest quarantine]
-- {why, rest of the quarantine in ms, max_lease, guard}: why is 'kept', 'new' (there was none) or 'lost' (it
-- was written in another life of the server); {'unset'}: there is none, nobody says a max_lease, and nothing was
-- written; {'conflict', N, set, max_lease}: set up otherwise; {'conflict', guard}: one of another format.
--@ info
local run = info('server', 'run_id') or ARGV[4]
local replid = info('replication', 'master_replid') or ARGV[5]
local time = redis.pcall('TIME')
if time.err then return time end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' then return stored end
local pattern = '^1|(%d+)|(.-)|(%d+)|([^|]*)|([^|]*)|(%d+)|?(%d*)$'
local n, set, lease, old_run, old_replid, till, longest = string.match(stored or '', pattern)
if stored and not n then return {'conflict', string.sub(stored, 1, 200)} end
local wanted = tonumber(ARGV[3])
if n and (n ~= ARGV[1] or set ~= ARGV[2] or (wanted ~= 0 and wanted ~= tonumber(lease))) then
  return {'conflict', n, string.sub(set, 1, 200), lease}
end
if not n and wanted == 0 and ARGV[6] == '0' then return {'unset'} end
lease = tonumber(lease) or (wanted ~= 0 and wanted or tonumber(ARGV[6]))
till = tonumber(till) or 0
-- What outlived a shorter max_lease by a reconfiguration holds until its quarantine is over.
local most = lease
if till > now and longest ~= '' then most = math.max(lease, tonumber(longest)) end
local why = 'kept'
if not n then
  why = 'new'
elseif old_run ~= run or old_replid ~= replid then
  why = 'lost'
end
-- Further away than any lease: its clock was set back.
if why ~= 'kept' or till > now + most + 1 then
  till = now + most + 1
  stored = string.format('1|%s|%s|%.0f|%s|%s|%.0f', ARGV[1], ARGV[2], lease, run, replid, till)
  if most > lease then stored = stored .. string.format('|%.0f', most) end
  local done = redis.pcall('SET', KEYS[1], stored)
  if done.err then return done end
end
return {why, math.max(0, till - now), lease, stored}
