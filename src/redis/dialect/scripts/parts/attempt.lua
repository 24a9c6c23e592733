-- SPDX-License-Identifier: BSD-3-Clause
local first, last, away, now_us = 1, n, #KEYS - n, nil
local floor, life_ms, max_lease_ms = ARGV[6] ~= '' and ARGV[6], ARGV[7], ARGV[8]
--@ fence
--@ highest
--@ next
--@ take
