-- SPDX-License-Identifier: BSD-3-Clause
-- Requests with one lock each that one script does together.
--@ from guard: guard_broken
--@ from server: clock_us

-- batch_begin - return the place of the first acquire, if there is one; whether there is an extend; an error if the
-- guard is not as read; an error if it permits no acquire (rule 4.10); and the clock in us, or nil and an error, if one
-- of them needs it.
local function batch_begin(letters, guard, seen, how)
  local acquires, extends = string.find(letters, 'a', 1, true), string.find(letters, 'e', 1, true)
  local lost, now_us, why = guard_broken(guard, seen), nil, nil
  local refused = lost
  if acquires and how == 'strict' and not lost then
    --@ from guard: guard_moved
    refused = guard_moved(seen)
  end
  if acquires or extends then now_us, why = clock_us() end
  return acquires, extends, lost, refused, now_us, why
end

-- travel - return the reply in wire format, as if it were the reply of a whole script.
local function travel(reply)
  if type(reply) == 'number' then return string.format(':%.0f\r\n', reply) end
  if type(reply) == 'string' then return '$' .. #reply .. '\r\n' .. reply .. '\r\n' end
  if reply.err then return '-' .. string.gsub(string.gsub(reply.err, '^%-', ''), '[\r\n]', ' ') .. '\r\n' end
  local parts = {'*' .. #reply .. '\r\n'}
  for i = 1, #reply do parts[i + 1] = travel(reply[i]) end
  return table.concat(parts)
end

-- who_listens - return the reply to PUBSUB NUMSUB for n channels; whether somebody may listen elsewhere, by patterns;
-- and whether anybody listens. One command asks for all, because most keys have no waiters. queued: somebody waits
-- elsewhere.
local function who_listens(channels, n, queued)
  local heard = n > 0 and redis.pcall('PUBSUB', 'NUMSUB', unpack(channels)) or {}
  local elsewhere = queued or heard.err or n > 0 and redis.pcall('PUBSUB', 'NUMPAT') ~= 0
  local any = elsewhere
  for i = 2, #heard, 2 do any = any or heard[i] ~= 0 end
  return heard, elsewhere, any
end

-- answer_all - notify the waiters of the locks that were deleted (rule 2.10), do what else is asked, and return all
-- replies as one text. replies has those of the acquires already, as texts; owned tells the locks that were deleted.
-- heard and elsewhere are of who_listens(), for the channels of these; none was asked about for the letter `mute`.
local function answer_all(keys, letters, owners, replies, owned, heard, elsewhere, mute, broken, notice, renew, release)
  local hows, texts, asked = {r = '', s = 'silent', d = 'deleted'}, {':1\r\n'}, 0
  for i = 1, #letters do
    local letter, reply = string.sub(letters, i, i), nil
    if owned[i] then
      reply = 1
      if letter ~= mute then
        asked = asked + 2
        if elsewhere or heard[asked] ~= 0 then reply = 1 + notice(keys[i], owners[i], hows[letter]) end
      end
      if broken then reply = {reply, broken} end
    elseif letter == 'e' then
      reply = renew(i)
    elseif letter ~= 'a' then
      reply = release(i, hows[letter])
    end
    if reply then
      texts[reply] = texts[reply] or travel(reply)
      replies[i] = texts[reply]
    end
  end
  return table.concat(replies)
end
