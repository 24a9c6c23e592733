-- SPDX-License-Identifier: BSD-3-Clause
-- An extend and a release of one lock of a batch.
if fenced then
  --@ carry
  carry = function(i)
    if token_of(i) ~= '0' then fence_carry(i + away, i + away, token_of(i), life_ms) end
  end
end
local function extend(i, owner)
  local first, last, why = i, i, lost
  if why then return why end
  --@ prolong
  if fenced then carry(i) end
  return extended
end
local function release(i, owner, how)
  local first, last = i, i
  local count, ours, other, wrong = look_all(first, last, owner)
  if fenced and count > 0 then carry(i) end
  --@ give_back
end
