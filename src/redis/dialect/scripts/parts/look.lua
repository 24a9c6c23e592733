-- SPDX-License-Identifier: BSD-3-Clause
-- The locks from `first` to `last`: how many are ours, and which; {holder, ttl} of the one of another owner's with the
-- longest ttl, where there is one; the first error; and which are another owner's, and the place of that one. Any other
-- is missing. The ttl is asked for where lock_whose does not tell it.
local function look_all(first, last, owner)
  local count, ours, other, wrong, theirs, longest = 0, {}, nil, nil, nil, nil
  for i = first, last do
    local whose, ttl = lock_whose(KEYS[i], owner)
    if whose == true then
      count, ours[i] = count + 1, true
    elseif whose then
      ttl = ttl or type(whose) == 'string' and redis.pcall('PTTL', KEYS[i])
      if type(ttl) ~= 'number' then
        wrong = wrong or ttl or whose
      else
        theirs = theirs or {}
        theirs[i] = true
        if not other or other[2] ~= -1 and (ttl == -1 or ttl > other[2]) then
          other, longest = {whose, ttl}, i
        end
      end
    end
  end
  return count, ours, other, wrong, theirs, longest
end
