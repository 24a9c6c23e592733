-- SPDX-License-Identifier: BSD-3-Clause
-- ARGV commands
-- Those of them that this user may not run, with blanks between; '' where it may run all. Nothing is written.
-- Redis 7 is asked for the right, with a key that every client with a guard may use, which leaves no denial in its
-- log. It also refuses where only the key is denied, and Redis 6 cannot be asked. Then the command itself is called,
-- without effect and with a key that does not exist: the error says whether command or key is denied.
local keyless = {TIME = {}, EVALSHA = {'-', '0'}}
local keyed = {SET = {'-', 'NX', 'XX'}, PEXPIRE = {'-'}, HEXISTS = {'-'}, HSCAN = {'0'}, HSET = {'-', '-', '-'},
  HDEL = {'-'}}
local function with_key(command, key)
  if keyless[command] then return unpack(keyless[command]) end
  return key, unpack(keyed[command] or {})
end
local function may(command)
  if redis.acl_check_cmd then
    local known, good = pcall(redis.acl_check_cmd, command, with_key(command, 'quorlock:guard'))
    if not known or good or keyless[command] then return known and good end
  end
  local done = redis.pcall(command, with_key(command, 'quorlock:none'))
  local text = type(done) == 'table' and done.err or ''
  for _, part in ipairs({"can't run this command", "run the '", 'Unknown Redis command'}) do
    if string.find(text, part, 1, true) then return false end
  end
  return true
end
local refused = {}
for _, command in ipairs(ARGV) do
  if not may(command) then refused[#refused + 1] = command end
end
return table.concat(refused, ' ')
