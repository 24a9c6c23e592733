-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks, each once [, the guard] [, the n counters]
-- ARGV n, a letter for each lock, guard as read or '', lease in ms or '', 'strict' or '', the counters' life in ms or
-- '', max_lease in ms, an owner for each lock [, for each lock the floor of an acquire, else the token or 0]
-- Does for n requests with one lock each what acquire.lua ('a'), extend.lua ('e') and release.lua ('s' silent, 'd'
-- deleted, 'r' neither) do. Returns their replies in wire format in one string. Locks that are ours are deleted with
-- one command, and guard and clock are read once. Acquires come first, because a server that is short of memory refuses
-- only the first write of a script.
--@ guarded
--@ clock
--@ seen
--@ string_whose
--@ string_clear
--@ string_notice
--@ look
--@ lift
--@ travel
--@ together
local holders, counters = see(1, n), fenced and see(away + 1, away + n)
if acquires then
  --@ string_set
  --@ together_take
  --@ together_free
  if n_taken == n then return front .. table.concat(taken, back .. front) .. back end
  for i, text in pairs(taken) do replies[i] = front .. text .. back end
  -- Locks that are ours already only live longer, which a server that is short of memory never refuses: they come last.
  for _, free in ipairs({true, false}) do
    for i = acquires, n do
      if sub(letters, i, i) == 'a' and (holders[i] == false) == free and not replies[i] then
        -- There is no string. If there is another type, lock_set will find it.
        if free then seen_texts()[KEYS[i]] = false end
        if stored[i] and fenced and not counters[i] then seen_texts()[KEYS[i + away]] = false end
        local reply = acquire(i, ARGV[i + 7])
        if free and reply.err then
          seen[KEYS[i]] = nil
          reply = acquire(i, ARGV[i + 7])
        end
        replies[i] = reply[1] == 1 and front .. fence_text(reply[2]) .. back or travel(reply)
      end
    end
  end
  if not string.find(letters, '[^a]') then return table.concat(replies) end
end
--@ together_others
local owned, keys, channels, n_owned, n_channels, queued, mute = {}, {}, {}, 0, 0, false, 's'
for i = 1, n do
  local letter = sub(letters, i, i)
  if holders[i] == ARGV[i + 7] and letter ~= 'e' and letter ~= 'a' then
    n_owned, owned[i] = n_owned + 1, true
    keys[n_owned] = KEYS[i]
    if fenced and counters[i] ~= token_of(i) then carry(i) end
    if letter ~= mute then
      n_channels = n_channels + 1
      channels[n_channels] = notice_channel(KEYS[i])
    end
  end
end
-- If DEL is refused, each key gets an error of its own.
if n_owned > 0 and type(redis.pcall('DEL', unpack(keys))) == 'table' then n_owned, owned = 0, {} end
-- For most keys the MGET above has returned the owner.
local function renew(i, owner)
  if lost or holders[i] ~= owner then return extend(i, owner) end
  local why = lock_lift(KEYS[i], lease_ms)
  if why then return why end
  if fenced and counters[i] == token_of(i) then
    lock_lift(KEYS[i + away], life_ms)
  elseif fenced then
    carry(i)
  end
  return extended
end
--@ together_replies
