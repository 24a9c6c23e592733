-- SPDX-License-Identifier: BSD-3-Clause
local n, token = tonumber(ARGV[1]), tonumber(ARGV[4])
local why = guard_broken(ARGV[3])
if why then return why end
local count, _, other, wrong = look_all(1, n, ARGV[2])
if wrong or other then return wrong or other end
if count < n then return 0 end
local now_us, counter
now_us, why = clock_us()
if not now_us then return why end
counter, why = fence_highest(#KEYS - n + 1, #KEYS)
if not counter then return why end
-- A grant with a counter below an existing one could share its token with another grant.
if counter <= token then
  counter = token
  why = fence_level(#KEYS - n + 1, #KEYS, counter, ARGV[5])
  if why then return why end
end
return {1, counter, now_us}
