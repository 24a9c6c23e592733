-- SPDX-License-Identifier: BSD-3-Clause
-- The string at the key; false where there is none, and a table where that cannot be told.
local function get(key) return redis.pcall('GET', key) end
