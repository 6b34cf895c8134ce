/** Runs the verbs `nodes ls`, `nodes drain` and `capacity ls`: the relays of a deployment and its admission scopes. */
import { DrainNodeDocument, ListCapacityScopesDocument, ListDispatcherNodesDocument } from '../../../generated/cli.ts';
import { confirmed } from '../confirm.ts';
import { printListing } from '../listing.ts';
import { objectText } from '../output.ts';
import { readMs } from '../times.ts';
import type { RunVerb } from '../verb.ts';

const NODES = {
  shown: ['node_id', 'links', 'unfinished_commands', 'stale', 'draining', 'updated_at'],
  id: ['node_id'],
};
const SCOPES = { shown: ['scope_id', 'reserved_commands', 'limit', 'oldest_deadline'], id: ['scope_id'] };
const DRAIN_MS = 10_000;

export const nodesLs: RunVerb = (run) =>
  printListing(run, NODES, async (page) => (await run.relay.query(ListDispatcherNodesDocument, page)).delivery.nodes);

export const capacityLs: RunVerb = (run) =>
  printListing(run, SCOPES, async (page) => (await run.relay.query(ListCapacityScopesDocument, page)).delivery.tenants);

export const nodesDrain: RunVerb = async (run) => {
  const [node_id = ''] = run.args;
  const within_ms = readMs(run.flags['within'], DRAIN_MS, '--within');
  await confirmed(run, `Draining ${node_id}`, node_id);
  const { drainNode } = await run.relay.query(DrainNodeDocument, { node_id, within_ms });
  run.io.print(objectText(drainNode, run.output, { id: ['node_id'] }));
};
