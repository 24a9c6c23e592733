-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the error for a value of another type at a key that the library named, with that key.
local function named(key, why)
  local kind = string.match(why.err, 'WRONGTYPE (%S+)$')
  return kind and redis.error_reply('WRONGTYPE ' .. kind .. ' ' .. key) or why
end
-- Returns the number of permits that the name has here; nil if it has none yet, or another number whose slots are all
-- free; nil and an error if one of those is held.
local function permits_found(permits)
  local number = lock_whose(KEYS[2])
  if type(number) == 'table' then return nil, named(KEYS[2], number) end
  if not number or number == permits then return number end
  for slot = 0, math.min(tonumber(number) or 64, 64) - 1 do
    local whose = lock_whose(slot_key(slot))
    if type(whose) == 'table' then return nil, named(slot_key(slot), whose) end
    if whose then
      return nil, redis.error_reply('PERMITS the name has ' .. number .. ' permits, this lock gives ' .. permits)
    end
  end
end
-- Keeps the number of permits for as long as any slot is held: its expiry is never before a slot's. Returns nil, or an
-- error.
local function permits_keep(number, permits, lease_ms)
  local left = redis.pcall('PTTL', KEYS[2])
  if type(left) == 'table' then return left end
  if number and left >= tonumber(lease_ms) then return nil end
  local done = redis.pcall('SET', KEYS[2], permits, 'PX', string.format('%.0f', math.max(left, tonumber(lease_ms))))
  if done.err then return done end
end
