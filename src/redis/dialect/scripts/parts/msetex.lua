-- SPDX-License-Identifier: BSD-3-Clause
-- Whether MSETEX can be used: Redis has it since 8.4, Valkey since 9.1, and the user needs the right to it. A user
-- without that right is asked about here, so that the server logs no denial.
local has_msetex = (redis.VALKEY_VERSION_NUM or 0) >= 0x90100 or (redis.REDIS_VERSION_NUM or 0) >= 0x80400
if has_msetex then
  local known, good = pcall(redis.acl_check_cmd, 'MSETEX', '1', KEYS[1], '')
  has_msetex = known and good
end
