-- SPDX-License-Identifier: BSD-3-Clause
-- Returns the string at the key; false if there is none; a table if there is an error.
local function get(key) return redis.pcall('GET', key) end
