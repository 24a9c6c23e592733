-- SPDX-License-Identifier: BSD-3-Clause
-- Notifies the waiters of the locks that were deleted (`owned`, `n_owned` of them), does what else is asked, and
-- returns the replies. One command asks who listens to `channels`, by name and by pattern: most keys have no waiters.
-- `queued`: somebody may wait elsewhere. No channel is asked about for the letter `mute`.
local heard = n_channels > 0 and redis.pcall('PUBSUB', 'NUMSUB', unpack(channels)) or {}
local send_all = queued or heard.err or n_channels > 0 and redis.pcall('PUBSUB', 'NUMPAT') ~= 0
local sent = send_all or broken
for i = 2, 2 * n_channels, 2 do sent = sent or heard[i] ~= 0 end
if n_owned == n and not sent then return string.rep(':1\r\n', n) end
local hows, texts, asked = {r = false, s = 'silent', d = 'deleted'}, {':1\r\n'}, 0
for i = 1, n do
  local letter, owner, reply = sub(letters, i, i), ARGV[i + 7], nil
  if owned[i] then
    reply = 1
    if letter ~= mute then
      asked = asked + 2
      if send_all or heard[asked] ~= 0 then reply = 1 + notice_released(KEYS[i], owner, hows[letter]) end
    end
    if broken then reply = {reply, broken} end
  elseif letter == 'e' then
    reply = renew(i, owner)
  elseif letter ~= 'a' then
    reply = release(i, owner, hows[letter])
  end
  if reply then
    texts[reply] = texts[reply] or travel(reply)
    replies[i] = texts[reply]
  end
end
return table.concat(replies)
