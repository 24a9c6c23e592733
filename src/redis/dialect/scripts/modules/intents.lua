-- SPDX-License-Identifier: BSD-3-Clause
-- Clients that wait for a shared lock.

-- give_turn - give readers that the holder blocked their turn before the next writer, if any wait for the key.
local function give_turn(key)
  --@ turn
end
