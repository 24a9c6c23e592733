-- SPDX-License-Identifier: BSD-3-Clause
local holder, ttl, count = false, -2, nil
for i = 1, #KEYS do
  local whose, _, held = lock_whose(KEYS[i])
  if type(whose) == 'table' then return whose end
  local left = whose and redis.call('PTTL', KEYS[i])
  if left and (not holder or ttl ~= -1 and (left == -1 or left > ttl)) then
    holder, ttl, count = whose, left, held
  end
end
