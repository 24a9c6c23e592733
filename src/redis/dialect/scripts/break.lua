-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock
-- 0: no key; {holder, ttl, type}: what was deleted. The holder is nil where the key held no string.
--@ string_notice
local kind = redis.pcall('TYPE', KEYS[1])
if kind.err then return kind end
kind = kind.ok
if kind == 'none' then return 0 end
local holder = false
if kind == 'string' then holder = string.sub(redis.call('GET', KEYS[1]), 1, 4096) end
local ttl = redis.call('PTTL', KEYS[1])
-- With its readers, and those that wait. They may be denied to a user who breaks none.
local done = redis.pcall('DEL', KEYS[1])
if type(done) == 'table' then return done end
redis.pcall('DEL', 'quorlock:readers:' .. KEYS[1], 'quorlock:intents:' .. KEYS[1])
notice_released(KEYS[1], holder or '')
return {holder, ttl, kind}
