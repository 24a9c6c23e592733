-- SPDX-License-Identifier: BSD-3-Clause
-- KEYS the n locks
-- ARGV n, the waiter's name, how many us it has waited, how many ms to remember it (0: it waits no more; far behind it
-- is remembered for longer), the modes as in modules/shared.lua [, the prefix]
-- Remembers a writer where readers block it, and a reader where a writer does. A list of both modes is remembered only
-- as a writer: otherwise two such lists could each have a key reserved that the other needs. That is done at each node,
-- whoever holds the keys: younger lists that come and go at other keys would otherwise overtake it at a different node
-- each time. Returns 1 and how many of the same mode are remembered that came before. Rules 8.4 and 8.6.
local n, waiter, waited_us, least_ms, modes, prefix = unpack(ARGV)
n, least_ms = tonumber(n), tonumber(least_ms)
--@ from shared: shared_locks, shared_state, settle_readers
local locks, request = shared_locks(KEYS, n, modes)
if not locks then return request end
--@ from queue: queue_exists, queue_before, queue_life, queue_stay, queue_remove, queue_soon
--@ from intents: intents_of, see_intents, waits_before
--@ from string: notice_channel
request.waiter, request.waited_us, request.waits = waiter, tonumber(waited_us), waits_before
local reads, ahead = not string.find(modes, 'x', 1, true), 0
local function remember(lock)
  see_intents(request, true)
  local state = shared_state(lock, '')
  local kept_out = type(state) == 'string' and (reads or not lock.shared and state == 'quorlock:readers')
  local place, intents = lock.place, intents_of(lock.key)
  if not place and (kept_out or request.mixed and not lock.shared) then place = request.since end
  if not place then return nil end
  local writers, readers = queue_before(intents, place, false)
  local before = queue_soon(lock.shared and readers or writers, 8, request.hurries)
  ahead = math.max(ahead, before)
  return queue_stay(intents, lock.letter, waiter, place, request.life_ms + queue_life(least_ms, before))
end
-- Clients that waited only behind this one are notified.
local function forget(lock)
  local key, shared = lock.key, lock.shared
  if not queue_exists(intents_of(key)) or not queue_remove(intents_of(key), waiter) then return nil end
  local holder = redis.pcall('GET', key)
  if shared and holder == 'quorlock:readers' then
    settle_readers(lock)
    holder = redis.pcall('GET', key)
  end
  if not holder or not shared and holder == 'quorlock:readers' then
    redis.pcall('PUBLISH', notice_channel(key), waiter)
  end
end
for i = 1, n do
  local why
  if least_ms > 0 then why = remember(locks[i]) else why = forget(locks[i]) end
  if why then return why end
end
return 1 + ahead
