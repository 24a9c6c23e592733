-- SPDX-License-Identifier: BSD-3-Clause
-- As acquire.lua, at the arbiter of a fair lock: others that came earlier and still wait come first. Rules 9.1 to 9.5.
-- ARGV from 9 on: the waiter's name, for how many us it has waited, for how many ms it stays in the queue without
-- another request (0: it does not queue; far behind it stays longer), the modes as in modules/shared.lua
-- [, the prefix]
-- A refusal has two parts more, {holder, ttl, n, which, turns, before}: after so many releases it may be our turn; so
-- many turns of others come before ours. Readers that follow each other in the queue have one turn together. Of those
-- between writers no turn is counted, so there may be more turns than that. If only waiting clients refuse, the holder
-- is 'quorlock:waits:NAME' with the first of them, and ttl says when that one is forgotten.
local n, owner, lease_ms, seen, token, life_ms, how, max_lease_ms = unpack(ARGV)
local waiter, waited_us, least_ms, modes, prefix = unpack(ARGV, 9)
n, least_ms = tonumber(n), tonumber(least_ms)
--@ from shared: shared_locks, shared_whose, shared_set, shared_lift, shared_clear, shared_channel
local locks, request = shared_locks(KEYS, n, modes)
if not locks then return request end
--@ from intents: read_queue_clock, waits_before
--@ from queue: queue_of, queue_exists, queue_since, queue_place, queue_tidy, queue_before, queue_first
--@ from queue: queue_soon
request.waiter, request.waited_us, request.waits = waiter, tonumber(waited_us), waits_before
-- Rule 9.3: one that the queue does not know is put where it would be if it had never been forgotten.
local came
local function find_came()
  read_queue_clock(request)
  came = came or queue_since(request.place_us, request.waited_us)
end
local function letter_of(lock) return lock.shared and 'r' or 'w' end
for _, lock in ipairs(locks) do
  local queue = queue_of(lock.key)
  local exists, why = queue_exists(queue)
  if why then return why end
  if exists then
    find_came()
    request.hurries = queue_tidy(queue, waiter, request.life_ms, shared_channel(lock), lock.key)
      or request.hurries
    lock.queued, lock.marked = queue_place(queue, letter_of(lock), waiter)
    came = math.min(came, lock.queued or came)
  end
end
-- Rules 9.1 and 9.5.
local turns, before = 0, 0
local function whose(lock, of)
  local state, ttl = shared_whose(lock, of)
  if state == true or type(state) == 'table' then return state end
  local place, count, readers = lock.queued or came, 0, 0
  if place then count, readers = queue_before(queue_of(lock.key), place, not lock.held) end
  -- Readers join those that hold the key.
  if not lock.shared and readers > 0 and lock.held ~= 'quorlock:readers' then count = count + 1 end
  if lock.held then turns = turns + 1 end
  turns, before = turns + count, before + count
  if state or count == 0 then return state, ttl end
  local first, left = queue_first(queue_of(lock.key), place, request.life_ms, not lock.shared)
  return 'quorlock:waits:' .. first, queue_soon(left, 900, request.hurries)
end
local function clock() return request.us end
--@ from guard: guard_refuses
--@ from fence: fence_count
--@ from locks: take
local count = fence_count(KEYS, n, token, life_ms, how, max_lease_ms)
local reply = guard_refuses(KEYS[n + 1], seen, how)
  or take(whose, shared_set, shared_lift, shared_clear, shared_channel, locks, 1, n, owner, lease_ms, clock, count)
if reply.err then return reply end
turns, before = queue_soon(turns, 8, request.hurries), queue_soon(before, 8, request.hurries)
for _, lock in ipairs(locks) do
  local queue, letter, why = queue_of(lock.key), letter_of(lock), nil
  if reply[1] == 1 then
    if lock.queued then
      --@ from queue: queue_mark
      queue_mark(queue, lock.key, letter, waiter, lock.queued, least_ms > 0 and request.life_ms + least_ms)
    end
  elseif least_ms > 0 then
    --@ from queue: queue_stay, queue_life
    find_came()
    if lock.marked then redis.pcall('ZREM', queue, string.upper(letter) .. waiter) end
    why = queue_stay(queue, letter, waiter, lock.queued or came, request.life_ms + queue_life(least_ms, before))
  end
  if why then return why end
end
if reply[1] ~= 1 then reply[4], reply[5], reply[6] = reply[4] or '', turns, before end
return reply
