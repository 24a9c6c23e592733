-- SPDX-License-Identifier: BSD-3-Clause
local broken, key, whose = why and 'GUARD', KEYS[1], nil
if not any then
  whose = lock_whose(key, owner)
else
  for at = 0, permits - 1 do
    if lock_whose(slot_key(at), owner) == true then
      key, whose = slot_key(at), true
      break
    end
  end
end
local ours = whose == true
local wrong = type(whose) == 'table' and whose
if ours then
  if ARGV[6] ~= '' then
    --@ carry
    fence_carry(#KEYS, #KEYS, ARGV[6], ARGV[7])
  end
  wrong = lock_clear(key)
  ours = not wrong
end
local sent = 0
if ours or not wrong and how == '' then sent = notice_released(name, owner, how) end
if wrong then return wrong end
if whose and not ours then return {whose, redis.pcall('PTTL', key), broken} end
local all = ours and 1 + sent or 0
return broken and {all, broken} or all
