-- SPDX-License-Identifier: BSD-3-Clause
-- The guard of a node. Format 2 has these fields with bars between them:
--   2, N, set, max_lease in ms, run_id, master_replid
--   till         when the quarantine ends, in ms of this server's clock
--   longest      the longest max_lease that this quarantine covers
--   how          what is known of leases longer than max_lease that are older than the guard: 'declared': there are
--                none; 'found': nothing is known
--   made         since when no longer lease was granted here, in ms of this server's clock
--   cause        of the quarantine: none, first (contact), restart, replication (only master_replid changed),
--                reconfigure, unknown (from format 1)
--   wanted       the max_lease of a client that was refused and may have such leases, in ms; 0: none
--   wanted_till  when its last lease has ended, in ms of this server's clock
-- Format 1 ends behind till, or behind longest if that is more than max_lease.
--@ from server: info

-- guard_broken - return an error if the guard is not the one that this connection read; nil if it is, or if none is
-- kept. Rule 4.10.
local function guard_broken(key, seen)
  if not seen or seen == '' or redis.pcall('GET', key) == seen then return nil end
  return redis.error_reply('GUARD the guard changed or is gone: the server may have lost its memory')
end

-- guard_moved - return an error if the guard names another process of the server; nil if it does not, or INFO is
-- denied. Rule 4.10.
local function guard_moved(seen)
  local run, replid = info('server', 'run_id'), info('replication', 'master_replid')
  if not run or not replid or string.find(seen, '|' .. run .. '|' .. replid .. '|', 1, true) then return nil end
  return redis.error_reply('GUARD another server than before answers: it may not have our locks')
end

-- guard_refuses - return an error if the guard does not permit an acquire; else nil. With how 'strict' the server's
-- process is compared, too.
local function guard_refuses(key, seen, how)
  local why = guard_broken(key, seen)
  if why or how ~= 'strict' then return why end
  --@ from guard: guard_moved
  return guard_moved(seen)
end

-- guard_read - return the fields; nil if the text is no guard of these formats.
local function guard_read(text, now)
  local front = '^([12])|(%d+)|([^|]*)|(%d+)|([^|]*)|([^|]*)|(%d+)|?(.*)$'
  local g, rest = {how = 'found', made = now, cause = 'unknown', wanted = 0, wanted_till = 0}, nil
  g.format, g.n, g.set, g.lease, g.run, g.replid, g.till, rest = string.match(text or '', front)
  if g.format == '1' then
    g.longest = string.match(rest, '^%d*$')
    if g.longest == '' then g.longest = g.lease end
  elseif g.format then
    g.longest, g.how, g.made, g.cause, g.wanted, g.wanted_till =
      string.match(rest, '^(%d+)|(%a+)|(%d+)|(%a+)|(%d+)|(%d+)$')
  end
  if not g.longest then return nil end
  for _, name in ipairs({'lease', 'till', 'longest', 'made', 'wanted', 'wanted_till'}) do
    g[name] = tonumber(g[name])
  end
  -- If the server's clock was set back.
  g.made = math.min(g.made, now)
  return g
end

-- guard_write - return the text of these fields.
local function guard_write(g)
  return string.format('2|%s|%s|%.0f|%s|%s|%.0f|%.0f|%s|%.0f|%s|%.0f|%.0f', g.n, g.set, g.lease, g.run, g.replid,
    g.till, g.longest, g.how, g.made, g.cause, g.wanted, g.wanted_till)
end

-- guard_own_memory - return whether this master has its own memory, although its replication id changed: it never took
-- data from another server. False if it may not be asked. Rule 4.15.
local function guard_own_memory()
  local commands = redis.pcall('INFO', 'commandstats')
  local known = type(commands) == 'string' and string.find(commands, 'resetstat', 1, true) == nil
  return known and info('stats', 'total_net_repl_input_bytes') == '0' and info('replication', 'role') == 'master'
end

-- guard_now - return an error or nil; the guard, nil if there is none or no guard; its text, or false; the clock in ms;
-- whether the guard names this process of the server; and the run and replid of that. run and replid are from the
-- client's INFO, which may be from before a change of role; a script's own INFO comes first, if it may ask. Rule 4.1.
local function guard_now(key, run, replid)
  run, replid = info('server', 'run_id') or run, info('replication', 'master_replid') or replid
  local time = redis.pcall('TIME')
  if time.err then return time end
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local stored = redis.pcall('GET', key)
  if type(stored) == 'table' then return stored end
  local guard = guard_read(stored, now)
  return nil, guard, stored, now, guard and guard.run == run and guard.replid == replid, run, replid
end
