-- SPDX-License-Identifier: BSD-3-Clause
-- Reads the identity of the server, its clock, and its guard. The client's INFO, in ARGV, may be from before a change
-- of role.
local run = info('server', 'run_id') or ARGV[4]
local replid = info('replication', 'master_replid') or ARGV[5]
local time = redis.pcall('TIME')
if time.err then return time end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' then return stored end
local guard = guard_read(stored, now)
local same_life = guard and guard.run == run and guard.replid == replid
