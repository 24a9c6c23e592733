-- SPDX-License-Identifier: BSD-3-Clause
-- A shared lock on KEY uses two more keys:
--   KEY                   the string quorlock:readers, the sentinel, so that exclusive locks and other clients find the
--                         key taken. It expires with the last reader.
--   quorlock:readers:KEY  a sorted set: a reader's owner -> when it expires, in ms of this server's clock. An entry
--                         counts only while the sentinel exists.
--   quorlock:intents:KEY  the clients that wait (queue.lua): a writer, w, that readers block; younger readers wait behind
--                         it. m: the same, of a list that also reads other keys. r: a reader that is blocked. No lock's
--                         safety depends on these entries.
-- The last argument has the modes, one letter for each lock: 's' shared, 'x' exclusive.
local sentinel, shared, held = 'quorlock:readers', {}, {}
for i = 1, tonumber(ARGV[1]) do shared[KEYS[i]] = string.sub(ARGV[#ARGV], i, i) == 's' end
local function readers_of(key) return 'quorlock:readers:' .. key end
local function intents_of(key) return 'quorlock:intents:' .. key end
local function whole(number) return string.format('%.0f', number) end
--@ clock
local read_us, no_clock = clock_us()
if no_clock then return no_clock end
local now = math.floor(read_us / 1000)
clock_us = function() return read_us end
