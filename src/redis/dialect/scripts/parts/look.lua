-- SPDX-License-Identifier: BSD-3-Clause
-- Reads the locks from `first` to `last`. Returns how many are ours; a table of those; {holder, ttl} of the lock of
-- another owner with the longest ttl, or nil; the first error; a table of the locks of other owners; and the place of
-- the one with the longest ttl. Any other lock is missing. The ttl is read if lock_whose does not return it.
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
