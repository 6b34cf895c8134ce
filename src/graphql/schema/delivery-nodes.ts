/** The nodes of the deployment, as each last reported itself, and the mutation that drains one. */
import type { NodeView } from '../../core/delivery/observation.ts';
import { notFound } from '../../core/errors.ts';
import { DRAIN_WITHIN_MS, NODE_LEASE_MS } from '../../core/limits.ts';
import { builder } from './builder.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { connectionOf } from './page.ts';

type Count = { readonly name: string; readonly value: number };

const Counter = builder.objectRef<Count>('Counter').implement({
  description: 'How often one kind of event happened on a node since it started.',
  fields: (t) => ({
    name: t.exposeString('name', {
      description: 'The name of what is counted. A case follows after a `:`, such as `commands_ended:expired`.',
    }),
    value: t.exposeFloat('value', { description: 'How often it happened.' }),
  }),
});

const DispatcherNode = builder.objectRef<NodeView>('DispatcherNode').implement({
  description:
    'One relay process, as it last reported itself; it reports every two seconds. The report shows that its loops ran, never that a client got or ran anything.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('DispatcherNode', row) }),
    nodeId: t.exposeID('nodeId', { description: 'The node’s id.' }),
    mailboxListenerAlive: t.exposeBoolean('listenerAlive', {
      description:
        'Whether the node received an entry of its own mailbox within the last five seconds; false if its report is older than that.',
    }),
    reconciliationAlive: t.exposeBoolean('reconciliationAlive', {
      description:
        'Whether a reconciliation pass finished on the node within the last five seconds; false if its report is older than that.',
    }),
    activeDrainers: t.exposeInt('activeDrainers', {
      description:
        'How many of the node’s links have queued commands. The node writes to them as fast as their clients read.',
    }),
    connectionWaiters: t.exposeInt('connectionWaiters', {
      description: 'How many callers wait on the node. The commands that they wait for may have run already.',
    }),
    links: t.exposeInt('links', { description: 'How many client links are bound on the node.' }),
    unfinishedCommands: t.exposeInt('unfinishedCommands', {
      description: 'How many commands are queued or dispatched on its links and have not ended.',
    }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When the node made this report.' }),
    stale: t.exposeBoolean('stale', {
      description: `Derived: whether the report is ${NODE_LEASE_MS / 1000} seconds old or older, so the node’s lease has expired. The node may have stopped, or it may not reach the store.`,
    }),
    draining: t.exposeBoolean('draining', {
      description:
        'Whether the node is draining: it admits no new commands, and closes each link that has no work left. Draining ends when the process ends.',
    }),
    counters: t.field({
      type: [Counter],
      complexity: { field: 1, multiplier: 50 },
      description:
        'The node’s counters, in order of name: outcomes, acknowledgements, recoveries and related events, at most 1000. Outcomes count the commands whose end this node recorded.',
      resolve: ({ counters }) =>
        [...counters].map(([name, value]) => ({ name, value })).sort((a, b) => (a.name < b.name ? -1 : 1)),
    }),
  }),
});

export const DispatcherNodeConnection = connectionOf('DispatcherNode', DispatcherNode, { rows: 'dispatcher nodes' });

builder.mutationField('drainNode', (t) =>
  t.field({
    type: DispatcherNode,
    description:
      'Drains a node. Administrators only. The node admits no new commands and closes its links one after another, each when nothing is queued or in flight on it. Answers at once with the work that is left; `delivery.nodes` shows the progress. A drain cannot be undone: start a new process instead. Answers `not_found` if there is no such node. The audit log records the request.',
    args: {
      nodeId: t.arg.id({ required: true, description: 'The node’s id.' }),
      withinMs: t.arg.int({
        required: true,
        defaultValue: DRAIN_WITHIN_MS.default,
        description: `How long links may finish their work, in milliseconds: ${DRAIN_WITHIN_MS.min} to ${DRAIN_WITHIN_MS.max}. Links that are still busy then are closed.`,
        extensions: { minimum: DRAIN_WITHIN_MS.min, maximum: DRAIN_WITHIN_MS.max },
      }),
    },
    resolve: async (_, { nodeId, withinMs }, { core, requester, notes }) =>
      (await core.delivery.drainNode(requester, nodeId, withinMs, notes?.requestId)) ?? notFound(),
  }),
);
