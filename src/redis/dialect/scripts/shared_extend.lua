-- SPDX-License-Identifier: BSD-3-Clause
-- As extend.lua, for keys some of which are shared; the modes are the last argument.
--@ get
--@ guarded
--@ shared_keys
local owner = ARGV[2]
local waits_before
--@ shared_whose
--@ look
--@ shared_lift
--@ extend
