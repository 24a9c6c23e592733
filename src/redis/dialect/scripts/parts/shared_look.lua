-- SPDX-License-Identifier: BSD-3-Clause
-- As look.lua, of locks in either mode.
local function look_all(first, last, owner)
  local count, ours, other, wrong = 0, {}, nil, nil
  for i = first, last do
    local whose, ttl = lock_whose(KEYS[i], owner)
    if whose == true then
      count, ours[i] = count + 1, true
    elseif whose then
      ttl = ttl or type(whose) == 'string' and redis.pcall('PTTL', KEYS[i])
      if type(ttl) ~= 'number' then
        wrong = wrong or ttl or whose
      elseif not other or other[2] ~= -1 and (ttl == -1 or ttl > other[2]) then
        other = {whose, ttl}
      end
    end
  end
  return count, ours, other, wrong
end
