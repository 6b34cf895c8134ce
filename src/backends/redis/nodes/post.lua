-- Adds a row to a node's mailbox.
-- a: node; kind; then name and value of each field.
-- Returns 1; 0: no such node is attached.
-- class: allow_oom
-- needs: lib-nodes
acts['nodes-post'] = function(a)
  local fields = {}
  for i = 3, #a, 2 do fields[a[i]] = a[i + 1] end
  return lib.nodes_post(a[1], a[2], fields) and 1 or 0
end
