-- SPDX-License-Identifier: BSD-3-Clause
-- Extends the locks from `first` to `last` if all are ours; else returns the reply.
local count, _, other, wrong = look_all(first, last, owner)
if wrong or other then return wrong or other end
if count <= last - first then return 0 end
for i = first, last do
  why = lock_lift(KEYS[i], lease_ms)
  if why then return why end
end
