-- SPDX-License-Identifier: BSD-3-Clause
-- Reads what an acquire asks for; returns an error if the guard does not permit it.
local n, owner, lease_ms, how = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[5]
local why = guard_broken(ARGV[4])
if not why and how == 'strict' then
  --@ moved
  why = guard_moved(ARGV[4])
end
if why then return why end
