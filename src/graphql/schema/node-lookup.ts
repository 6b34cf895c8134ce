/**
 * Defines the queries `node` and `nodes`, which find any row by its id, with the same access rules as the fields that
 * list such rows.
 */
import { requireAdmin } from '../../core/auth/principal.ts';
import { knownInSight, knownUser } from '../../core/auth/sight.ts';
import type { WindowKey } from '../../core/contexts/context.ts';
import { invalid } from '../../core/errors.ts';
import { streamKey, type MessageKey, type StreamKey } from '../../core/history/message.ts';
import { clientKeyText } from '../../core/ids.ts';
import { NODE_IDS } from '../../core/limits.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import { siteKeyText } from '../../core/sites/site.ts';
import type { RowSize } from './answer-budget.ts';
import { builder } from './builder.ts';
import { loadWaiters } from './calls-pending.ts';
import { loadCommand } from './commands.ts';
import { loadSized } from './connections.ts';
import type { Context } from './context.ts';
import { CONTEXT_SIZE, loadContext } from './contexts.ts';
import { MESSAGE_SIZE } from './history.ts';
import { loadBy } from './loaders.ts';
import { readNodeId, type NodeKey, type NodeKind, type NodeRef } from './node-ids.ts';
import { asNode, NodeInterface, type NodeType } from './node-interface.ts';
import { grantOf, SESSION_SIZE } from './sites-sessions.ts';
import { SITE_SIZE } from './sites.ts';

const itself = (id: string): string => id;
const loadUser = loadBy(itself, ({ core, requester }, ids) => core.users.many(requester, ids));
const loadStream = loadBy(
  ({ userId, suffix }: StreamKey) => streamKey(userId, suffix),
  ({ core }, keys) => core.history.manyStreams(keys),
);
const loadMessage = loadBy(
  ({ userId, suffix, seq }: MessageKey) => `${seq}/${streamKey(userId, suffix)}`,
  ({ core, requester }, keys) => core.history.manyMessages(requester, keys),
);
const loadWindow = loadBy(
  (key: WindowKey) => `${clientKeyText(key)}/${key.windowId}`,
  ({ core, requester }, keys) => core.contexts.manyWindows(requester, keys),
);
const loadSite = loadBy(siteKeyText, ({ core }, keys) => core.sites.many(keys));
const loadSession = loadBy(itself, ({ core, requester }, ids) =>
  Promise.all(ids.map((id) => core.sites.session(requester, id))),
);
const loadNode = loadBy(itself, ({ core, requester }, ids) => core.delivery.nodesById(requester, ids));
const loadScope = loadBy(itself, ({ core, requester }, ids) => core.delivery.tenantsById(requester, ids));

type Found = MaybePromise<object | null>;
type Finders = { readonly [Kind in NodeKind]: (key: NodeKey<Kind>, context: Context) => Found };

/**
 * Finds the row for each kind of id. Null: the row does not exist or belongs to another user. For nodes and scopes,
 * throws `forbidden` unless the requester is an administrator.
 */
const FINDERS: Finders = {
  User: ({ userId }, context) => found('User', loadUser(context, userId)),
  ConnectionSnapshot: (key, context) =>
    ifSeen(key, context, () => found('ConnectionSnapshot', loadSized(context, key))),
  Stream: (key, context) => ifOwn(key, context, () => found('Stream', loadStream(context, key))),
  Message: ({ seq, at, ...key }, context) =>
    ifOwn(key, context, () => {
      const row = loadMessage(context, { ...key, seq: Number(seq), at: Number(at) });
      return sized('Message', row, { context, size: MESSAGE_SIZE });
    }),
  PendingRpc: ({ rpcId, ...key }, context) =>
    ifSeen(key, context, () => {
      const row = thenDo(loadWaiters(context, key), (all) => all.find(({ waiter }) => waiter.rpcId === rpcId));
      return found('PendingRpc', row);
    }),
  Command: (key, context) => ifSeen(key, context, () => found('Command', loadCommand(context, key))),
  DeliveryRecord: (key, context) =>
    ifSeen(key, context, () =>
      // Copied, because the same object may be shown as a `Command` too, and an object has one type.
      found(
        'DeliveryRecord',
        thenDo(loadCommand(context, key), (command) => command && { ...command }),
      ),
    ),
  ExecutionContext: (key, context) =>
    ifSeen(key, context, () => sized('ExecutionContext', loadContext(context, key), { context, size: CONTEXT_SIZE })),
  BrowserWindow: (key, context) => ifSeen(key, context, () => found('BrowserWindow', loadWindow(context, key))),
  Site: (key, context) =>
    ifOwn(key, context, () => sized('Site', loadSite(context, key), { context, size: SITE_SIZE })),
  SiteOfSession: ({ sessionId }, context) => {
    // Other requesters than the holder of a grant get null here. For them the site has another id, which names its
    // owner.
    const site = thenDo(loadSession(context, sessionId), (view) => (view?.site?.seen === 'granted' ? view.site : null));
    return sized('Site', site, { context, size: SITE_SIZE });
  },
  SiteSession: ({ sessionId }, context) =>
    sized('SiteSession', loadSession(context, sessionId), { context, size: SESSION_SIZE }),
  SiteGrant: ({ sessionId, grantId }, context) =>
    found(
      'SiteGrant',
      thenDo(loadSession(context, sessionId), (view) => {
        const shown = [...(view?.grant ? [view.grant] : []), ...(view?.grants ?? [])];
        const grant = shown.find((one) => one.grantId === grantId);
        return grant ? grantOf({ sessionId }, grant) : null;
      }),
    ),
  DispatcherNode: ({ nodeId }, context) => {
    requireAdmin(context.requester);
    return found('DispatcherNode', loadNode(context, nodeId));
  },
  CapacityScope: ({ scopeId }, context) => {
    requireAdmin(context.requester);
    return found('CapacityScope', loadScope(context, scopeId));
  },
};

/** Finds a row if the requester may read rows of its user. For any other user, returns null and reads nothing. */
function ifOwn(key: { readonly userId: string }, context: Context, find: () => Found): Found {
  return knownUser(context.requester, key.userId) === null ? null : find();
}

/** Like `ifOwn`, for rows whose loader returns only those that the requester's token may see. */
function ifSeen(key: { readonly userId: string }, context: Context, find: () => Found): Found {
  return knownInSight(context.requester, key.userId) === null ? null : find();
}

function found<Row extends object>(type: NodeType, row: MaybePromise<Row | null | undefined>): Found {
  return thenDo(row, (one) => (one ? asNode(type, one) : null));
}

type Sized<Row> = { readonly context: Context; readonly size: RowSize<Row> };

/** Like `found`, for a row that may be large: its size counts against the budget of the answer. */
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
      // Asynchronous, so that an error fails only its own row.
      return refs.map(async (ref) => find(ref, context));
    },
  }),
}));
