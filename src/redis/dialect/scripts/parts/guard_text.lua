-- SPDX-License-Identifier: BSD-3-Clause
-- The guard of a node, format 2, has these fields with bars between them:
--   2, N, set, max_lease in ms, run_id, master_replid
--   till         when the quarantine ends, in ms of this server's clock
--   longest      the longest max_lease that this quarantine covers
--   how          what is known of leases longer than max_lease that are older than the guard: 'declared': there are
--                none; 'found': nothing is known
--   made         since when no longer lease was granted here, in ms of this server's clock
--   cause        of the quarantine: none, first (contact), restart, reconfigure, unknown (from format 1)
--   wanted       the max_lease of a client that was refused and may have such leases, in ms; 0: none
--   wanted_till  when its last lease has ended, in ms of this server's clock
-- Format 1 ends behind till, or behind longest if that is more than max_lease.
-- guard_read returns nil if the text is not a guard of these formats.
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
  for _, name in ipairs({'lease', 'till', 'longest', 'made', 'wanted', 'wanted_till'}) do g[name] = tonumber(g[name]) end
  -- If the server's clock was set back.
  g.made = math.min(g.made, now)
  return g
end
local function guard_write(g)
  return string.format('2|%s|%s|%.0f|%s|%s|%.0f|%.0f|%s|%.0f|%s|%.0f|%.0f', g.n, g.set, g.lease, g.run, g.replid, g.till,
    g.longest, g.how, g.made, g.cause, g.wanted, g.wanted_till)
end
