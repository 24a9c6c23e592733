-- SPDX-License-Identifier: BSD-3-Clause
-- What is done with several locks at once, of whatever kind. The kind is in the functions that are given:
--   whose(key, owner)   nil: free; true: ours; a string: the holder, and if known its ttl; a table: an error
--   set(key, owner, lease_ms), lift(key, lease_ms, owner), clear(key, owner)   nil, or an error
--   channel(key)        the channel of the key's waiters
--   notice(key, owner, how)   how many were notified
-- A key may be whatever these functions understand, if whose() also returns the ttl of a holder.
--@ from fence: fence_raise

-- lock_lift - move the expiry to the end of the lease, if it would come earlier; return nil, or an error. From Redis 7
-- on, which is also the first to tell scripts its version, one command does it. GT ignores a key without an expiry;
-- that is left to the other commands. Rules 3.1 and 3.3.
local function lock_lift(key, lease_ms)
  if redis.REDIS_VERSION_NUM and redis.pcall('PEXPIRE', key, lease_ms, 'GT') == 1 then return end
  local ttl = redis.pcall('PTTL', key)
  if type(ttl) == 'table' then return ttl end
  if ttl < tonumber(lease_ms) then
    local done = redis.pcall('PEXPIRE', key, lease_ms)
    if type(done) == 'table' then return done end
  end
end

-- look_all - read the locks from `first` to `last`. Return how many are ours; a table of those; {holder, ttl} of the
-- lock of another owner with the longest ttl, or nil; the first error; a table of the locks of other owners; and the
-- place of the one with the longest ttl. Any other lock is missing. The ttl is read if whose() does not return it.
local function look_all(whose, keys, first, last, owner)
  local count, ours, other, wrong, theirs, longest = 0, {}, nil, nil, nil, nil
  for i = first, last do
    local state, ttl = whose(keys[i], owner)
    if state == true then
      count, ours[i] = count + 1, true
    elseif state then
      ttl = ttl or type(state) == 'string' and redis.pcall('PTTL', keys[i])
      if type(ttl) ~= 'number' then
        wrong = wrong or ttl or state
      else
        theirs = theirs or {}
        theirs[i] = true
        if not other or other[2] ~= -1 and (ttl == -1 or ttl > other[2]) then
          other, longest = {state, ttl}, i
        end
      end
    end
  end
  return count, ours, other, wrong, theirs, longest
end

-- refusal - complete the reply {holder, ttl}: how many clients listen for its release, 0 if the user may not run
-- PUBSUB; and for several locks '1' for each that another owner holds, else '0'.
local function refusal(other, channel, theirs, first, last)
  local count = redis.pcall('PUBSUB', 'NUMSUB', channel)
  other[3] = count.err and 0 or count[2]
  if last > first then
    for i = first, last do theirs[i] = theirs[i] and '1' or '0' end
    other[4] = table.concat(theirs)
  end
  return other
end

-- take - take the locks from `first` to `last`, all or none, and return the reply. clock() is as clock_us().
-- count(first, last, now_us) returns the counter of the grant, or nil and an error; nil: the locks have no counters.
-- Rules 1.14 and 5.1.
local function take(whose, set, lift, clear, channel, keys, first, last, owner, lease_ms, clock, count)
  local _, ours, other, wrong, theirs, longest = look_all(whose, keys, first, last, owner)
  if wrong then return wrong end
  if other then
    --@ from locks: refusal
    return refusal(other, channel(keys[longest]), theirs, first, last)
  end
  local now_us, why = clock()
  local counter = 0
  -- The counters are written before the locks: if memory is short, no lock is left without its counter.
  if count then
    if not now_us then return why end
    counter, why = count(first, last, now_us)
    if not counter then return why end
  end
  for i = first, last do
    if ours[i] then
      why = lift(keys[i], lease_ms, owner)
    else
      why = set(keys[i], owner, lease_ms)
    end
    if why then
      for k = first, i - 1 do
        if not ours[k] then clear(keys[k], owner) end
      end
      return why
    end
  end
  return {1, counter, now_us or 0}
end

-- prolong - extend the locks from `first` to `last` if all are ours, and return nil; else return the reply. Rule 1.14.
local function prolong(whose, lift, keys, first, last, owner, lease_ms)
  local count, _, other, wrong = look_all(whose, keys, first, last, owner)
  if wrong or other then return wrong or other end
  if count <= last - first then return 0 end
  for i = first, last do
    local why = lift(keys[i], lease_ms, owner)
    if why then return why end
  end
end

-- give_back - delete those locks from `first` to `last` that are ours, notify their waiters, and return the reply.
-- `broken`: 'GUARD' if the guard is not as read. carry(first, last) is called before the first of ours is deleted; nil:
-- the locks have no counters. Rule 2.2.
local function give_back(whose, clear, notice, keys, first, last, owner, how, broken, carry)
  local count, ours, other, wrong = look_all(whose, keys, first, last, owner)
  if count > 0 and carry then carry(first, last) end
  for i = first, last do
    local why = ours[i] and clear(keys[i], owner)
    if why then
      wrong, ours[i] = wrong or why, nil
    end
  end
  local sent, tells_all = 0, not how or how == ''
  for i = first, last do
    if ours[i] or not wrong and tells_all then
      sent = math.max(sent, notice(keys[i], owner, how))
    end
  end
  if wrong then return wrong end
  if other then return {other[1], other[2], broken} end
  local all = count > last - first and 1 + sent or 0
  return broken and {all, broken} or all
end

-- raise - raise the counters, the last n of all_keys, to the token if all n locks are ours, and return the reply.
-- clock() is as clock_us().
local function raise(whose, keys, n, owner, clock, all_keys, token, life_ms)
  local count, _, other, wrong = look_all(whose, keys, 1, n, owner)
  if wrong or other then return wrong or other end
  if count < n then return 0 end
  local now_us, why = clock()
  if not now_us then return why end
  local counter
  counter, why = fence_raise(all_keys, #all_keys - n + 1, #all_keys, token, life_ms)
  return why or {1, counter, now_us}
end
