-- SPDX-License-Identifier: BSD-3-Clause
-- A shared lock on KEY, beside others:
--   KEY                   the string quorlock:readers, the sentinel, so that exclusive locks and peers find the key
--                         taken. It expires with the last reader.
--   quorlock:readers:KEY  a sorted set: a reader's owner -> when it expires, in ms of this server's clock. An entry
--                         counts only while the sentinel stands.
--   quorlock:intents:KEY  a sorted set of those that wait -> when they are forgotten, in ms of this server's clock. A
--                         member is a letter, when it began to wait in ms of this server's clock, and its name, with
--                         colons between: w:1763847000123:host:77:0123abcd...
--                         w: a writer that readers keep out: younger readers wait behind it. m: the same, and it reads
--                         other keys.
--                         r: a reader that is kept out. t: a reader that was, until a writer gave the key back: it is
--                         let in now, whatever writers wait. Nobody's lock depends on any of them.
-- The modes, 's' shared and 'x' exclusive, a letter for each lock, come last.
local sentinel, shared, held = 'quorlock:readers', {}, {}
for i = 1, tonumber(ARGV[1]) do shared[KEYS[i]] = string.sub(ARGV[#ARGV], i, i) == 's' end
local function readers_of(key) return 'quorlock:readers:' .. key end
local function intents_of(key) return 'quorlock:intents:' .. key end
local function whole(number) return string.format('%.0f', number) end
local now, no_clock
do
  local time = redis.pcall('TIME')
  if time.err then no_clock = time else now = time[1] * 1000 + math.floor(time[2] / 1000) end
end
if no_clock then return no_clock end
