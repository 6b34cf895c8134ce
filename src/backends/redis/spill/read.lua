-- Reads a payload. a: 1 name; 2 expiry. Returns {'present', text}; {'expired'}; or {'unavailable'} if there is none of
-- this name and expiry.
-- class: allow_oom
acts['spill-read'] = function(a)
  if tonumber(a[2]) <= now then return { 'expired' } end
  local value = call('GET', key('payload', a[1]))
  local lead = a[2] .. ' '
  if not value or string.sub(value, 1, #lead) ~= lead then return { 'unavailable' } end
  return { 'present', string.sub(value, #lead + 1) }
end
