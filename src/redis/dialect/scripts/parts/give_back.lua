-- SPDX-License-Identifier: BSD-3-Clause
-- Deletes those locks from `first` to `last` that are ours, notifies their waiters, and returns the reply.
for i = first, last do
  local why = ours[i] and lock_clear(KEYS[i], owner)
  if why then
    wrong, ours[i] = wrong or why, nil
  end
end
local sent = 0
for i = first, last do
  if ours[i] or not (wrong or how) then
    sent = math.max(sent, notice_released(KEYS[i], owner, how))
  end
end
if wrong then return wrong end
if other then return {other[1], other[2], broken} end
local all = count > last - first and 1 + sent or 0
return broken and {all, broken} or all
