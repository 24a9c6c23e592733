-- SPDX-License-Identifier: BSD-3-Clause
-- As extend.lua, of keys of which some are shared; the modes come last.
--@ get
--@ guarded
--@ clock
--@ shared_keys
local owner = ARGV[2]
local waits_before
--@ shared_whose
--@ look
--@ shared_lift
--@ extend
