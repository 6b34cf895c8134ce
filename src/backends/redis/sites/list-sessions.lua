-- Lists the sessions of a site by name.
-- a: 1 site hash; 2 lower bound for ZRANGEBYLEX; 3 the most sessions
-- Returns a list of texts: session NUL session hash.
-- class: allow_oom
-- needs: lib-sites
acts['sites-list-sessions'] = function(a)
  lib.sites_sweep(a[1])
  return call('ZRANGEBYLEX', key('sessions', a[1]), a[2], '+', 'LIMIT', 0, a[3])
end
