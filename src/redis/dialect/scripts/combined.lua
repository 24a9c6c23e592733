-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks, each once [, the guard]
-- ARGV n, a letter for each lock, guard as seen or '', lease in ms or '', an owner for each lock
-- For n callers with one lock each what release.lua ('s' silent, 'd' deleted, 'r' neither) and extend.lua ('e') do.
-- Their replies, each as it would travel, in one string. What is ours is deleted at once, and the guard and the clock
-- are looked at once. Nothing is written that a server without memory would refuse: in a script it asks itself that
-- before the first write only.
--@ guarded
--@ clock
--@ string_whose
--@ string_clear
--@ string_notice
--@ look
--@ lift
--@ travel
local n, letters, lease_ms = tonumber(ARGV[1]), ARGV[2], ARGV[4]
local lost = guard_broken(ARGV[3])
local broken = lost and 'GUARD'
local extended = {1, string.find(letters, 'e', 1, true) and clock_us() or 0}
local function extend(i, owner)
  local first, last, why = i, i, lost
  if why then return why end
  --@ prolong
  return extended
end
local function release(i, owner, how)
  local first, last = i, i
  local count, ours, other, wrong = look_all(first, last, owner)
  --@ give_back
end
local holders, owned, keys, channels = redis.pcall('MGET', unpack(KEYS, 1, n)), {}, {}, {}
local n_owned, n_channels, sub = 0, 0, string.sub
for i = 1, n do
  local letter = sub(letters, i, i)
  if holders[i] == ARGV[i + 4] and letter ~= 'e' then
    n_owned, owned[i] = n_owned + 1, true
    keys[n_owned] = KEYS[i]
    if letter ~= 's' then
      n_channels = n_channels + 1
      channels[n_channels] = notice_channel(KEYS[i])
    end
  end
end
-- Where that is refused, each key has an error of its own.
if n_owned > 0 and type(redis.pcall('DEL', unpack(keys))) == 'table' then n_owned, owned = 0, {} end
-- Whether anybody listens is asked once, by name and by pattern: most keys have nobody who waits for them.
local heard = n_channels > 0 and redis.pcall('PUBSUB', 'NUMSUB', unpack(channels)) or {}
local tell_all = heard.err or n_channels > 0 and redis.pcall('PUBSUB', 'NUMPAT') ~= 0
local told = tell_all or broken
for i = 2, 2 * n_channels, 2 do told = told or heard[i] ~= 0 end
if n_owned == n and not told then return string.rep(':1\r\n', n) end
local hows, replies, texts, asked = {r = false, s = 'silent', d = 'deleted'}, {}, {':1\r\n'}, 0
for i = 1, n do
  local letter, owner, reply = string.sub(letters, i, i), ARGV[i + 4], nil
  if owned[i] then
    reply = 1
    if letter ~= 's' then
      asked = asked + 2
      if tell_all or heard[asked] ~= 0 then reply = 1 + notice_released(KEYS[i], owner, hows[letter]) end
    end
    if broken then reply = {reply, broken} end
  elseif letter == 'e' then
    -- One look at all keys has told whose most of them are.
    reply = not lost and holders[i] == owner and (lock_lift(KEYS[i], lease_ms) or extended) or extend(i, owner)
  else
    reply = release(i, owner, hows[letter])
  end
  texts[reply] = texts[reply] or travel(reply)
  replies[i] = texts[reply]
end
return table.concat(replies)
