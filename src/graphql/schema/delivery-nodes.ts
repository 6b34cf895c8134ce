/** Defines the listing of the deployment's nodes, as each last reported itself, and the mutation that drains a node. */
import type { NodeView } from '../../core/commands/inspection.ts';
import { DRAIN_WITHIN_MS, MAX_REASON, NODE_LEASE_MS } from '../../core/limits.ts';
import { builder, ranged } from './builder.ts';
import { fieldsOf, flag, float, id, int, nullable, text, time } from './fields.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { connectionOf } from './page.ts';
import { answered, orRefusal } from './refusal.ts';

type Count = { readonly name: string; readonly value: number };

const Counter = builder.objectRef<Count>('Counter').implement({
  description: 'How often one kind of event happened on a node since it started.',
  fields: fieldsOf(() => ({
    name: text('The name of what is counted. A case follows after a `:`, such as `commands_ended:expired`.'),
    value: float('How often it happened.'),
  })),
});

/** The end of the description of a field that only recent versions report. */
const UNREPORTED = 'null if the node is of a version that does not report it';

const DispatcherNode = builder.objectRef<NodeView>('DispatcherNode').implement({
  description:
    'One relay process, as it last reported itself; it reports every two seconds. The report shows that its loops ran, never that a client got or ran anything.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('DispatcherNode', row) }),
    nodeId: id('The node’s id.'),
    mailboxListenerAlive: t.exposeBoolean('listenerAlive', {
      description:
        'Whether the node received an entry of its own mailbox within the last five seconds; false if its report is older than that.',
    }),
    reconciliationAlive: flag(
      'Whether a reconciliation pass finished on the node within the last five seconds; false if its report is older than that.',
    ),
    activeDrainers: int(
      'How many of the node’s links have queued commands. The node writes to them as fast as their clients read.',
    ),
    connectionWaiters: int('How many callers wait on the node. The commands that they wait for may have run already.'),
    links: int('How many client links are bound on the node.'),
    unfinishedCommands: int('How many commands are queued or dispatched on its links and have not ended.'),
    updatedAt: time('When the node made this report.'),
    stale: flag(
      `Derived: whether the report is ${NODE_LEASE_MS / 1000} seconds old or older, so the node’s lease has expired. The node may have stopped, or it may not reach the store.`,
    ),
    draining: flag(
      'Whether the node is draining: it admits no new commands, and closes each link that has no work left. Draining ends when the process ends.',
    ),
    counters: t.field({
      type: [Counter],
      complexity: { field: 1, multiplier: 50 },
      description:
        'The node’s counters, in order of name: outcomes, acknowledgements, recoveries and related events, at most 1000. Outcomes count the commands whose end this node recorded.',
      resolve: ({ counters }) =>
        [...counters].map(([name, value]) => ({ name, value })).sort((a, b) => (a.name < b.name ? -1 : 1)),
    }),
    version: t.string({
      nullable: true,
      description: `The version of callboard that the node runs; ${UNREPORTED}.`,
      resolve: ({ process }) => process?.version ?? null,
    }),
    startedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: `When the node started; ${UNREPORTED}.`,
      resolve: ({ process }) => process?.startedAt ?? null,
    }),
    memoryBytes: t.float({
      nullable: true,
      description: `How many bytes of memory its process has in use (resident); ${UNREPORTED}.`,
      resolve: ({ process }) => process?.memoryBytes ?? null,
    }),
    eventLoopDelayMs: t.float({
      nullable: true,
      description: `How late the event loop of its process ran, in milliseconds: 99 % of the timers that measured it since the report before were at most this late. Also null before the first measurement; ${UNREPORTED}.`,
      resolve: ({ process }) => process?.loopDelayMs ?? null,
    }),
    policyDigest: nullable.text('The digest of the policy that the node runs; null if the node does not report it.'),
    policyFault: nullable.text('Why the node does not use its changed policy file; null if it runs its file.'),
  })),
});

export const DispatcherNodeConnection = connectionOf('DispatcherNode', DispatcherNode, { rows: 'dispatcher nodes' });

const DrainNodeResult = orRefusal(
  'DrainNodeResult',
  DispatcherNode,
  'The node’s report after the request, or a refusal.',
);

builder.mutationField('drainNode', (t) =>
  t.field({
    type: DrainNodeResult,
    description:
      'Drains a node. Administrators only. The node admits no new commands and closes its links one after another, each when nothing is queued or in flight on it. Answers at once with the work that is left; `delivery.nodes` shows the progress. A drain cannot be undone: start a new process instead. Refuses with `not_found` if there is no such node. The audit log records the request.',
    args: {
      nodeId: t.arg.id({ required: true, description: 'The node’s id.' }),
      withinMs: t.arg.int({
        ...ranged(DRAIN_WITHIN_MS),
        description: `How long links may finish their work, in milliseconds: ${DRAIN_WITHIN_MS.min} to ${DRAIN_WITHIN_MS.max}. Links that are still busy then are closed.`,
      }),
      reason: t.arg.string({
        description: `The reason for the audit log, at most ${MAX_REASON} characters. Omitted: none.`,
      }),
    },
    resolve: (_, { nodeId, withinMs, reason }, { core, requester, notes }) =>
      answered(() => core.delivery.drainNode(requester, nodeId, withinMs, reason ?? null, notes?.requestId)),
  }),
);
