-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the lock [, the guard], the counter
-- ARGV owner, guard as seen or '', token, the counter's life in ms
-- {1, counter, clock in us}: the lock is ours, and the counter is the token, or higher; 0: no lock;
-- {holder, ttl}: somebody else's.
--@ guarded
--@ fence
--@ hash
local broken = guard_broken(ARGV[2])
if broken then return broken end
local ours = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(ours) == 'table' then return ours end
if ours == 0 then
  local holder, _, why = hash_owner(KEYS[1])
  return why or holder and {holder, redis.call('PTTL', KEYS[1])} or 0
end
local time = redis.pcall('TIME')
if time.err then return time end
local counter, why = fence_read(KEYS[#KEYS])
if not counter then return why end
-- An acknowledgement with a counter that is higher would let two grants share a token.
if counter <= tonumber(ARGV[3]) then
  counter = tonumber(ARGV[3])
  why = fence_store(KEYS[#KEYS], counter, ARGV[4])
  if why then return why end
end
return {1, counter, time[1] * 1000000 + time[2]}
