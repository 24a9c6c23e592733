-- SPDX-License-Identifier: BSD-3-Clause
-- As acquire.lua, for keys some of which are shared; with the floor 'read' the counters are returned, but not changed.
-- ARGV from 9 on: the waiter's name, or '' if it does not wait, how many us it has waited, the modes
local ARGV = {ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[7], ARGV[5], ARGV[6], ARGV[8], ARGV[9], ARGV[10], ARGV[11]}
--@ get
--@ guarded
--@ shared_keys
--@ string_channel
--@ queue_clock
--@ queue
local waiter, waited_us = ARGV[9], tonumber(ARGV[10])
local repairs = ARGV[5] == 'repair'
--@ waits_before
-- A reader that holds the lock may repair it, whoever waits.
if repairs then waits_before = nil end
--@ shared_whose
local owner = ARGV[2]
--@ shared_lift
--@ shared_set
--@ shared_clear
--@ shared_notice
--@ look
--@ acquire
