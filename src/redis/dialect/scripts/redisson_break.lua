-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS[1] the lock
-- ARGV [owner or '' [, the prefix]]
-- Returns 0 if there is no key, else {holder, ttl, type} of what was deleted. The holder is nil if the key held no
-- hash. With an owner it deletes the lock of that one only; else it returns {holder, ttl}.
local only_owner = unpack(ARGV)
--@ from hash: hash_owner, notice_released
local kind = redis.pcall('TYPE', KEYS[1])
if kind.err then return kind end
kind = kind.ok
if kind == 'none' then return 0 end
local holder, _, why
if kind == 'hash' then holder, _, why = hash_owner(KEYS[1]) end
if why then return why end
if only_owner == '' then only_owner = nil end
if only_owner and kind ~= 'hash' then return redis.error_reply('WRONGTYPE ' .. kind) end
local ttl = redis.call('PTTL', KEYS[1])
if only_owner and holder ~= only_owner then return {holder or '', ttl} end
local done = redis.pcall('DEL', KEYS[1])
if type(done) == 'table' then return done end
notice_released(KEYS[1])
return {holder or false, ttl, kind}
