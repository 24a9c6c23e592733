-- SPDX-License-Identifier: BSD-3-Clause
-- Most locks are free. They are taken here, where the server has MSETEX by one command, after one for their new
-- counters and one for the others. What is refused is left to the loop behind, which stores the same counters again.
--@ msetex
local pcall, taken, n_taken, stored = redis.pcall, {}, 0, {}
-- Returns the digits of the next counter of a free lock; nil if the counter is odd, or would live shorter.
local function next_text(i)
  local counter, left = 0, 0
  if counters[i] ~= false then
    counter, left = counters[i] and fence_number(counters[i]), pcall('PTTL', KEYS[i + away])
  end
  if counter and type(left) == 'number' and left <= tonumber(life_ms) then
    return fence_text(fence_next(counter, nil, token_of(i), now_us, max_lease_ms))
  end
end
-- Sets a key, or each key of the table to the text behind it; returns whether that was done.
local function set(...)
  local done = pcall('SET', ...)
  return done and done.ok
end
local function set_all(words, ...)
  local size, options = #words, {...}
  for k = 1, #options do words[size + k] = options[k] end
  return size == 0 or pcall('MSETEX', size / 2, unpack(words)) == 1
end
-- NX, because a key of another type may have been read as missing.
local function store(i, text)
  if counters[i] then return set(KEYS[i + away], text, 'PX', life_ms) end
  return set(KEYS[i + away], text, 'NX', 'PX', life_ms)
end
local locks, fresh, others, n_fresh, n_others = {}, {}, {}, 0, 0
for i = acquires, now_us and not moved and n or 0 do
  local free = sub(letters, i, i) == 'a' and holders[i] == false
  local text = free and (not fenced and '0' or next_text(i))
  if text and has_msetex then
    if fenced and counters[i] then
      others[n_others + 1], others[n_others + 2] = KEYS[i + away], text
      n_others = n_others + 2
    elseif fenced then
      fresh[n_fresh + 1], fresh[n_fresh + 2] = KEYS[i + away], text
      n_fresh = n_fresh + 2
    end
    locks[2 * n_taken + 1], locks[2 * n_taken + 2] = KEYS[i], ARGV[i + 7]
    taken[i], n_taken = text, n_taken + 1
  elseif text and (not fenced or store(i, text)) then
    stored[i] = true
    if set(KEYS[i], ARGV[i + 7], 'NX', 'PX', lease_ms) then taken[i], n_taken = text, n_taken + 1 end
  end
end
if has_msetex and n_taken > 0 and set_all(others, 'PX', life_ms) and set_all(fresh, 'NX', 'PX', life_ms) then
  stored = taken
end
if has_msetex and not (stored == taken and set_all(locks, 'NX', 'PX', lease_ms)) then taken, n_taken = {}, 0 end
