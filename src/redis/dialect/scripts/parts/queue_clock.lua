-- SPDX-License-Identifier: BSD-3-Clause
-- The clock of the queues, which quorlock:clock keeps for all keys of this server: 'REAL PLACE LIFE', each in us. REAL is
-- the server's clock when the others were made. Neither of them ever goes back, so a step of the server's clock changes
-- no order. LIFE goes forward by 0.9 s at most from one request to the next: after a step forward each client that is
-- alive asks again before it is forgotten, and a dead one is forgotten after two requests of others.
-- Returns both: in us, and in ms. With reads_only the clock is not stored, and both go forward by all that has passed.
local function queue_clock(real_us, reads_only)
  local place, life, most = real_us, real_us, 4000000000000000 -- us: below 2^52, with room for waits
  local kept = redis.pcall('GET', 'quorlock:clock')
  local last, last_place, last_life
  if type(kept) == 'string' then last, last_place, last_life = string.match(kept, '^(%d+) (%d+) (%d+)$') end
  if last then
    local passed = math.max(real_us - tonumber(last), 1)
    place = math.min(tonumber(last_place) + passed, most)
    if not reads_only then passed = math.min(passed, 900000) end
    life = math.min(tonumber(last_life) + passed, most)
  end
  if not reads_only then
    redis.pcall('SET', 'quorlock:clock', string.format('%.0f %.0f %.0f', real_us, place, life), 'PX', '600000')
  end
  return place, math.floor(life / 1000)
end
