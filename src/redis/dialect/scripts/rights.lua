-- SPDX-License-Identifier: BSD-3-Clause
-- ARGV commands
-- Returns those that this user may not run, separated by blanks; '' if it may run all. Writes nothing.
-- Redis 7 can be asked (acl_check_cmd); we ask with a key that every client with a guard may use, so the ACL log gets
-- no entry. But it also refuses if only the key is denied, and Redis 6 cannot be asked. In these cases the command
-- itself is called, in a form without effect and with a key that does not exist: the error tells whether the command or
-- the key is denied.
local commands = {unpack(ARGV)}
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
for _, command in ipairs(commands) do
  if not may(command) then refused[#refused + 1] = command end
end
return table.concat(refused, ' ')
