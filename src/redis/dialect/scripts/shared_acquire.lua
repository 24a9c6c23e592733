-- SPDX-License-Identifier: BSD-3-Clause
-- As acquire.lua, of keys of which some are shared; but with the floor 'read' the counters stay as they are.
-- ARGV[9] on: a name for who waits, or '' for one that does not, for how many ms it has, and the modes.
--@ get
--@ guarded
--@ clock
--@ shared_keys
local waiter, waited_ms = ARGV[9], tonumber(ARGV[10])
local repairs = ARGV[5] == 'repair'
--@ waits_before
-- A reader that has its lock is not kept from mending it.
if repairs then waits_before = nil end
--@ shared_whose
local owner = ARGV[2]
--@ shared_lift
--@ shared_set
--@ shared_clear
--@ shared_notice
--@ look
--@ acquire
