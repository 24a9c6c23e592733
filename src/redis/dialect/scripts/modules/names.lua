-- SPDX-License-Identifier: BSD-3-Clause
-- The names of a lock's other keys and of its channel. They stand under the client's prefix as the key does, so that
-- rights to the names under the prefix are all that a client needs beside the guard. Rules 2.10 (the channel), 5.1, 7.1,
-- 8.2 and 9.4. A script that imports this has a local `prefix`, the last of its ARGV: nil if there is none.

-- name_of - return the name for a key: the prefix, `front`, and the key without its prefix.
local function name_of(front, key)
  if not prefix then return front .. key end
  return prefix .. front .. string.sub(key, #prefix + 1)
end

-- name_for_all - return a name that is the same for all keys with the prefix.
local function name_for_all(name)
  return (prefix or '') .. name
end

-- slot_asked - return the number of the slot at the key, and the name.
local function slot_asked(key)
  local front = prefix or ''
  local asked, name = string.match(string.sub(key, #front + 1), '^quorlock:slot:(%d+):(.*)$')
  return tonumber(asked), front .. name
end
