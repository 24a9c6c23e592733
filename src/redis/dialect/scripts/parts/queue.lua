-- SPDX-License-Identifier: BSD-3-Clause
-- The queue of a fair lock. quorlock:queue:KEY is a sorted set: a waiting client -> when it is forgotten, in ms of this
-- server's clock. A client is named 'AT:NAME:LETTER': when it came, in us of this server's clock, its name, and 'r' for
-- a reader, 'w' for a writer. AT has 16 digits, so the names sort as the clients came. In capitals the client has this
-- node's yes. It counts again if that was taken back, because its attempt failed at other nodes.
local function queue_of(key) return 'quorlock:queue:' .. key end
-- Returns the clients in the queue, each with its expiry, without those that are forgotten; or nil and an error.
local function queue_read(key, now_ms)
  local queue = queue_of(key)
  local line = redis.pcall('ZREMRANGEBYSCORE', queue, '-inf', string.format('%.0f', now_ms))
  if type(line) ~= 'table' then line = redis.pcall('ZRANGE', queue, '0', '-1', 'WITHSCORES') end
  if not line.err then return line end
  local kind = string.find(line.err, 'WRONGTYPE', 1, true) and redis.pcall('TYPE', queue)
  return nil, kind and kind.ok and redis.error_reply('WRONGTYPE ' .. kind.ok .. ' ' .. queue) or line
end
