-- SPDX-License-Identifier: BSD-3-Clause
-- As raise.lua, for keys some of which are shared; the modes are the last argument.
local ARGV = {ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[7]}
--@ get
--@ guarded
--@ fence
--@ highest
--@ shared_keys
local waits_before
--@ shared_whose
--@ look
--@ raise
