-- The index of commands by time of admission: each hour has a ZSET of the commands that were admitted in it. Admissions
-- remove the names of commands that are gone, and the key of each hour expires.
-- needs: lib-spans
lib.newest_hour = 3600000
-- The most old names that one admission removes. An admission removes names only if its time in milliseconds is a
-- multiple of `newest_turn`.
lib.newest_trim = 1000
lib.newest_turn = 64

-- Returns the start of the hour that a time (ms) is in, as text.
lib.newest_of = function(at)
  return text(at - at % lib.newest_hour)
end

lib.newest_key = function(at)
  return key('admitted', lib.newest_of(at))
end

-- Removes names whose commands are certainly gone.
lib.newest_drop = function(kept)
  local before = now - lib.spans_life - kept
  local name = lib.newest_key(before)
  local gone = math.min(call('ZCOUNT', name, '-inf', text(before)), lib.newest_trim)
  if gone > 0 then call('ZREMRANGEBYRANK', name, 0, gone - 1) end
end

-- Adds a command that is admitted now to the index. `window`: how long an ended command's record is kept, ms. `first`:
-- whether the command may be the first one of its hour.
lib.newest_add = function(rec, window, first)
  local name = lib.newest_key(now)
  if first and call('EXISTS', name) == 0 then
    expire(name, lib.newest_hour - now % lib.newest_hour + lib.spans_life + window)
  end
  put(name, rec.admittedAt, rec.uh .. rec.ch .. rec.id)
  fact('trimmed', name, lib.newest_trim_now, window)
end

lib.newest_trim_now = function(_, window)
  if now % lib.newest_turn == 0 then lib.newest_drop(window) end
  return true
end
