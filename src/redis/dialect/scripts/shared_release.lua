-- SPDX-License-Identifier: BSD-3-Clause
-- As release.lua, of keys of which some are shared. The modes come last; before them '' is neither silent nor deleted.
-- Of a shared key our own entry is deleted, and its waiters are notified by the last reader.
--@ get
--@ guarded
--@ shared_keys
local waits_before
--@ shared_whose
--@ shared_clear
--@ shared_notice
--@ look
ARGV[6] = ARGV[6] ~= '' and ARGV[6]
--@ release
