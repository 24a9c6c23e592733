-- SPDX-License-Identifier: BSD-3-Clause
-- The first key is a slot's: its number, and the name whose permit it is. The keys of the name's other slots are made
-- from it, because only a refusal looks at them: most requests need not name them all.
local asked, name = string.match(KEYS[1], '^quorlock:slot:(%d+):(.*)$')
asked = tonumber(asked)
local function slot_key(slot)
  return 'quorlock:slot:' .. slot .. ':' .. name
end
