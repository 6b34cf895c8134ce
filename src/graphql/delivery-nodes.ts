import type { NodeView } from '../core/delivery/observation.ts';
import { notFound } from '../core/errors.ts';
import { DRAIN_WITHIN_MS, NODE_LEASE_MS } from '../core/limits.ts';
import { builder } from './builder.ts';
import { connectionOf } from './page.ts';

type Count = { readonly name: string; readonly value: number };

const Counter = builder.objectRef<Count>('Counter').implement({
  description: 'How often something happened on one node since it started.',
  fields: (t) => ({
    name: t.exposeString('name', {
      description: 'What is counted; after a `:` the case of it, as `commands_ended:expired`.',
    }),
    value: t.exposeFloat('value', { description: 'How often.' }),
  }),
});

const DispatcherNode = builder.objectRef<NodeView>('DispatcherNode').implement({
  description:
    'One callboard process as it last said of itself, every two seconds. It shows that its loops turned, never that a client got or ran anything.',
  fields: (t) => ({
    nodeId: t.exposeID('nodeId', { description: 'The node.' }),
    mailboxListenerAlive: t.exposeBoolean('listenerAlive', {
      description:
        'Whether what the node posted to its own mailbox came to it within the last five seconds; false once its report is older.',
    }),
    reconciliationAlive: t.exposeBoolean('reconciliationAlive', {
      description:
        'Whether a reconciliation pass finished on it within the last five seconds; false once its report is older.',
    }),
    activeDrainers: t.exposeInt('activeDrainers', {
      description: 'Links of it that have commands queued, which it writes to as fast as they take them.',
    }),
    connectionWaiters: t.exposeInt('connectionWaiters', {
      description: 'Callers that wait on it. What they wait for may have run all the same.',
    }),
    links: t.exposeInt('links', { description: 'Links of clients that are bound on it.' }),
    unfinishedCommands: t.exposeInt('unfinishedCommands', {
      description: 'Commands queued or dispatched on its links and not ended.',
    }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it said all this.' }),
    stale: t.exposeBoolean('stale', {
      description: `Derived: whether that is ${NODE_LEASE_MS / 1000} seconds ago or more, so that its lease has run out. It may have stopped, or not reach the store.`,
    }),
    draining: t.exposeBoolean('draining', {
      description:
        'Whether it admits nothing more and closes its links as they have nothing left. It ends with the process.',
    }),
    counters: t.field({
      type: [Counter],
      complexity: { field: 1, multiplier: 50 },
      description:
        'What was counted on it, in order of name: outcomes, acknowledgements, recoveries and related events, at most 1000. Outcomes are of commands whose end this node recorded.',
      resolve: ({ counters }) =>
        [...counters].map(([name, value]) => ({ name, value })).sort((a, b) => (a.name < b.name ? -1 : 1)),
    }),
  }),
});

export const DispatcherNodeConnection = connectionOf('DispatcherNode', DispatcherNode, 'dispatcher nodes');

builder.mutationField('drainNode', (t) =>
  t.field({
    type: DispatcherNode,
    description:
      'Drains a node, for administrators: it admits nothing more, and closes its links one after another, each once nothing is queued or in flight on it. Answers at once with what is left on the node; `delivery.nodes` shows how it goes on. It cannot be taken back but by a new process. A node that is not there is `not_found`. Written to the audit log.',
    args: {
      nodeId: t.arg.id({ required: true, description: 'The node.' }),
      withinMs: t.arg.int({
        required: true,
        defaultValue: DRAIN_WITHIN_MS.default,
        description: `When links that still have something to do are closed all the same, ${DRAIN_WITHIN_MS.min} to ${DRAIN_WITHIN_MS.max} milliseconds from now.`,
        extensions: { minimum: DRAIN_WITHIN_MS.min, maximum: DRAIN_WITHIN_MS.max },
      }),
    },
    resolve: async (_, { nodeId, withinMs }, { core, who }) =>
      (await core.delivery.drainNode(who, nodeId, withinMs)) ?? notFound(),
  }),
);
