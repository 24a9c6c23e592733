-- SPDX-License-Identifier: BSD-3-Clause
-- Deletes a lock that is ours; or lets it expire after so many ms, whenever it was to expire before. Returns nil, or an
-- error.
local keep_ms = ARGV[7]
local function lock_clear(key)
  local done
  if keep_ms then
    done = redis.pcall('PEXPIRE', key, keep_ms)
  else
    done = redis.pcall('DEL', key)
  end
  if type(done) == 'table' then return done end
end
