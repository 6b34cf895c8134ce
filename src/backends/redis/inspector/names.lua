-- Names of commands with a record, in order.
-- a: 1 and 2 bounds as ZRANGEBYLEX takes them, 3 at most how many.
-- Returns the names.
-- class: allow_oom
-- needs: lib-commands
acts['inspector-names'] = function(a)
  lib.commands_sweep()
  return call('ZRANGEBYLEX', key('cmds'), a[1], a[2], 'LIMIT', 0, a[3])
end
