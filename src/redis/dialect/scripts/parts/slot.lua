-- SPDX-License-Identifier: BSD-3-Clause
-- The first key is a slot's: it contains the slot's number and the name whose permit it is. The keys of the other slots
-- are made from it: only a refusal reads them, so most requests need not name them.
local asked, name = string.match(KEYS[1], '^quorlock:slot:(%d+):(.*)$')
asked = tonumber(asked)
local function slot_key(slot)
  return 'quorlock:slot:' .. slot .. ':' .. name
end
