/** `node` and `nodes`: any row by its id, with the same access as the fields that list it. */
import { knownUser, requireAdmin } from '../../core/auth/principal.ts';
import { invalid } from '../../core/errors.ts';
import { NODE_IDS } from '../../core/limits.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import { builder } from './builder.ts';
import { CONNECTION_SIZE } from './connections.ts';
import type { Context } from './context.ts';
import { CONTEXT_SIZE } from './contexts.ts';
import { MESSAGE_SIZE } from './history.ts';
import {
  readNodeId,
  type NodeKey,
  type NodeKind,
  type NodeRef,
  asNode,
  NodeInterface,
  type NodeType,
} from './node-interface.ts';
import type { RowSize } from './page-budget.ts';
import { grantOf, SESSION_SIZE, SITE_SIZE } from './sites.ts';
type Found = MaybePromise<object | null>;
type Finders = { readonly [Kind in NodeKind]: (key: NodeKey<Kind>, context: Context) => Found };

/** How the row of each kind of id is found. Null: there is none, or the requester may not see it. */
const FINDERS: Finders = {
  User: ({ userId }, { loaders }) => found('User', loaders.nodes.user(userId)),
  ConnectionSnapshot: (key, context) =>
    ifOwn(key, context, ({ loaders }) =>
      sized('ConnectionSnapshot', loaders.connection(key), { context, size: CONNECTION_SIZE }),
    ),
  Stream: (key, context) => ifOwn(key, context, ({ loaders }) => found('Stream', loaders.nodes.stream(key))),
  Message: ({ seq, at, ...key }, context) =>
    ifOwn(key, context, ({ loaders }) => {
      const row = loaders.nodes.message({ ...key, seq: Number(seq), at: Number(at) });
      return sized('Message', row, { context, size: MESSAGE_SIZE });
    }),
  PendingRpc: ({ rpcId, ...key }, context) =>
    ifOwn(key, context, ({ loaders }) => {
      const row = thenDo(loaders.waitersOfCommand(key), (all) => all.find(({ waiter }) => waiter.rpcId === rpcId));
      return found('PendingRpc', row);
    }),
  Command: (key, context) => ifOwn(key, context, ({ loaders }) => found('Command', loaders.nodes.command(key))),
  DeliveryRecord: (key, context) =>
    ifOwn(key, context, ({ loaders }) =>
      // A copy, because the same object may also be shown as a `Command`.
      found(
        'DeliveryRecord',
        thenDo(loaders.nodes.command(key), (command) => command && { ...command }),
      ),
    ),
  ExecutionContext: (key, context) =>
    ifOwn(key, context, ({ loaders }) =>
      sized('ExecutionContext', loaders.nodes.context(key), { context, size: CONTEXT_SIZE }),
    ),
  BrowserWindow: (key, context) =>
    ifOwn(key, context, ({ loaders }) => found('BrowserWindow', loaders.nodes.window(key))),
  Site: (key, context) =>
    ifOwn(key, context, ({ loaders }) => sized('Site', loaders.nodes.site(key), { context, size: SITE_SIZE })),
  SiteOfSession: ({ sessionId }, context) => {
    // For everyone but the holder of a grant, the site has another id, which names its owner.
    const site = thenDo(context.loaders.nodes.session(sessionId), (view) =>
      view?.site?.seen === 'granted' ? view.site : null,
    );
    return sized('Site', site, { context, size: SITE_SIZE });
  },
  SiteSession: ({ sessionId }, context) =>
    sized('SiteSession', context.loaders.nodes.session(sessionId), { context, size: SESSION_SIZE }),
  SiteGrant: ({ sessionId, grantId }, { loaders }) =>
    found(
      'SiteGrant',
      thenDo(loaders.nodes.session(sessionId), (view) => {
        const shown = [...(view?.grant ? [view.grant] : []), ...(view?.grants ?? [])];
        const grant = shown.find((one) => one.grantId === grantId);
        return grant ? grantOf({ sessionId }, grant) : null;
      }),
    ),
  DispatcherNode: ({ nodeId }, { requester, loaders }) => {
    requireAdmin(requester);
    return found('DispatcherNode', loaders.nodes.dispatcherNode(nodeId));
  },
  CapacityScope: ({ scopeId }, { requester, loaders }) => {
    requireAdmin(requester);
    return found('CapacityScope', loaders.nodes.scope(scopeId));
  },
};

/** Finds a row of a user whose rows the requester may read. Null, without reading anything, for any other user. */
function ifOwn(key: { readonly userId: string }, context: Context, find: (context: Context) => Found): Found {
  return knownUser(context.requester, key.userId) === null ? null : find(context);
}

function found<Row extends object>(type: NodeType, row: MaybePromise<Row | null | undefined>): Found {
  return thenDo(row, (one) => (one ? asNode(type, one) : null));
}

type Sized<Row> = { readonly context: Context; readonly size: RowSize<Row> };

/** Does the same as `found`, for rows that may be large: they count against the size of the answer. */
function sized<Row extends object>(
  type: NodeType,
  row: MaybePromise<Row | null>,
  { context, size }: Sized<Row>,
): Found {
  return found(
    type,
    thenDo(row, (one) => one && context.budget.row(one, size)),
  );
}

function find<Kind extends NodeKind>(ref: NodeRef<Kind>, context: Context): Found {
  return FINDERS[ref.kind](ref.key, context);
}

const ACCESS =
  'Null if there is no such row now, or if it belongs to another user. The access is that of the fields that list the row.';

builder.queryFields((t) => ({
  node: t.field({
    type: NodeInterface,
    nullable: true,
    description: `A row by its \`id\`. ${ACCESS}`,
    args: { id: t.arg.id({ required: true, description: 'The field `id` of a row.' }) },
    resolve: (_, { id }, context) => find(readNodeId('id', id), context),
  }),
  nodes: t.field({
    type: [NodeInterface],
    nullable: { list: false, items: true },
    description: `Rows by their ids, at most ${NODE_IDS}, in the order of the ids. ${ACCESS}`,
    complexity: ({ ids }) => ({ field: 1, multiplier: Math.max(1, ids.length) }),
    args: { ids: t.arg.idList({ required: true, description: `The fields \`id\` of 1 to ${NODE_IDS} rows.` }) },
    resolve: (_, { ids }, context) => {
      if (ids.length === 0 || ids.length > NODE_IDS) invalid('ids', `expected 1 to ${NODE_IDS} ids`);
      const refs: readonly NodeRef[] = ids.map((id) => readNodeId('ids', id));
      // An asynchronous function, so that an error concerns its own row only.
      return refs.map(async (ref) => find(ref, context));
    },
  }),
}));
