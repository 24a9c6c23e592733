-- SPDX-License-Identifier: BSD-3-Clause
-- As release.lua, for keys some of which are shared. The modes are the last argument; '' before them means neither
-- silent nor deleted. A shared key loses only our own entry; the last reader's release notifies the waiters.
local ARGV = {ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]}
--@ get
--@ guarded
--@ shared_keys
local waits_before
--@ string_channel
--@ queue_clock
--@ shared_whose
--@ shared_clear
--@ shared_notice
--@ look
ARGV[6] = ARGV[6] ~= '' and ARGV[6]
--@ release
