-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks, each once [, the guard]
-- ARGV n, a letter for each lock, guard as seen or '', an owner for each lock
-- What release.lua does, for n callers with one lock each: 's' silent, 'd' deleted, 'a' neither. Their replies, each as
-- it would travel, in one string. What costs time is done for all at once where it can be: deleting what is ours.
--@ guarded
--@ string_whose
--@ string_clear
--@ string_notice
--@ look
--@ travel
local n, letters = tonumber(ARGV[1]), ARGV[2]
local broken = guard_broken(ARGV[3]) and 'GUARD'
local hows = {s = 'silent', d = 'deleted'}
-- Where there is more to say than that it was deleted.
local function release(i, how)
  local first, last, owner = i, i, ARGV[i + 3]
  local count, ours, other, wrong = look_all(first, last, owner)
  --@ give_back
end
local owned, keys = {}, {}
for i = 1, n do
  if lock_whose(KEYS[i], ARGV[i + 3]) == true then
    owned[i], keys[#keys + 1] = true, KEYS[i]
  end
end
-- Where that is refused, each key has an error of its own.
if #keys > 0 and type(redis.pcall('DEL', unpack(keys))) == 'table' then owned = {} end
local replies = {}
for i = 1, n do
  local how, reply = hows[string.sub(letters, i, i)], nil
  if owned[i] then
    reply = 1 + notice_released(KEYS[i], ARGV[i + 3], how == 'silent')
    if broken then reply = {reply, broken} end
  else
    reply = release(i, how)
  end
  replies[i] = reply == 1 and ':1\r\n' or travel(reply)
end
return table.concat(replies)
