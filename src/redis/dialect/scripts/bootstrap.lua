-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the guard, as guard.lua has it
-- ARGV N, set, max_lease in ms, run_id and master_replid from the client's INFO, '1' to write over what is there, and
-- the longest max_lease that any of the nodes was set up for, in ms
-- 'written:' and the guard; 'guarded:' and the value that is there, a guard or not.
--@ info
-- The client's INFO may be from before a change of role.
local run = info('server', 'run_id') or ARGV[4]
local replid = info('replication', 'master_replid') or ARGV[5]
local time = redis.pcall('TIME')
if time.err then return time end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' then return stored end
local lease, till = tonumber(ARGV[3]), 0
local most = math.max(lease, tonumber(ARGV[7]))
if stored then
  local old, old_till, longest = string.match(stored, '^1|%d+|.-|(%d+)|[^|]*|[^|]*|(%d+)|?(%d*)$')
  if not old or ARGV[6] ~= '1' then return 'guarded:' .. string.sub(stored, 1, 400) end
  most = math.max(most, tonumber(old))
  if tonumber(old_till) > now and longest ~= '' then most = math.max(most, tonumber(longest)) end
end
-- Leases of the old length may still run. The rest of an earlier quarantine is shorter: it was for the longest
-- max_lease at most.
if ARGV[6] == '1' then till = now + most + 1 end
local guard = string.format('1|%s|%s|%.0f|%s|%s|%.0f', ARGV[1], ARGV[2], lease, run, replid, till)
if most > lease then guard = guard .. string.format('|%.0f', most) end
local done = redis.pcall('SET', KEYS[1], guard)
if done.err then return done end
return 'written:' .. guard
