-- SPDX-License-Identifier: BSD-3-Clause
-- Whether the request is for one lock that is ours, while the guard is as read and the counter, if there is one, equals
-- the token: most releases and renewals are. They are done first, without the functions that the others need, because
-- even a function that is not called costs time.
local fenced = token and token ~= ''
local single = ARGV[1] == '1' and redis.pcall('GET', KEYS[1]) == ARGV[2] and not guard_broken(seen)
  and (not fenced or redis.pcall('GET', KEYS[#KEYS]) == token)
