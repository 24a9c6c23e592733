-- SPDX-License-Identifier: BSD-3-Clause
-- What every batch begins with: the arguments, the guard and the clock, each read once.
local n, letters, lease_ms, life_ms = tonumber(ARGV[1]), ARGV[2], ARGV[4], ARGV[6]
local away, fenced, sub = #KEYS - n, life_ms ~= '', string.sub
local acquires, extends = string.find(letters, 'a', 1, true), string.find(letters, 'e', 1, true)
local lost, now_us, replies, carry = guard_broken(ARGV[3]), nil, {}, nil
local broken = lost and 'GUARD'
if acquires or extends then now_us = clock_us() end
local extended = {1, now_us or 0}
local function token_of(i) return ARGV[7 + n + i] end
