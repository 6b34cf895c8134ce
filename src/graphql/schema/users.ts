/**
 * Defines the schema of users: the listing, one user, and a user's connections, streams and waits as nested fields.
 * Other files add further fields.
 */
import { FILTER_TEXT_CHARS, PAGE_MAX } from '../../core/limits.ts';
import type { UserView } from '../../core/users/users.ts';
import { completenessOf, type ObservedSource } from '../../core/completeness.ts';
import type { Page } from '../../core/page.ts';
import { thenDo, both } from '../../core/maybe-promise.ts';
import { ConnectionSnapshotConnection, ConnectionStatusEnum, CONNECTION_SIZE } from './connections.ts';
import { loadFirstBy, loadPagesBy } from './loaders.ts';
import { StreamConnection } from './history.ts';
import { builder } from './builder.ts';
import { fieldsOf, int, typed } from './fields.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import {
  PAGED,
  CompletenessType,
  connectionOf,
  forAdmins,
  pageArguments,
  pageCost,
  pageOf,
  scannedBy,
  scannedPageCost,
} from './page.ts';
import { PendingRpcConnection } from './calls-pending.ts';

const itself = (userId: string): string => userId;
const connectionsOfUser = loadFirstBy(itself, ({ core, requester }, ids, first) =>
  core.connections.ofUsers(requester, ids, first),
);
const streamsOfUser = loadFirstBy(itself, ({ core, requester }, ids, first) =>
  core.history.ofUsers(requester, ids, first),
);
const pendingOfUser = loadPagesBy(
  itself,
  ({ core, requester }, ids, first) => core.rpc.ofUsers(requester, ids, first),
  ({ core, requester }, userId, page) => core.rpc.pending(requester, { userId }, page),
);

export const User = builder.objectRef<UserView>('User').implement({
  description:
    'A canonical user. The relay knows users only by their connections and retained messages; there is no user registry.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: ({ id }) => nodeIdOf('User', { userId: id }) }),
    userId: t.exposeID('id', { description: 'The canonical user id.' }),
    connectionCount: int('How many connections of the user were observed.'),
    streamCount: int('How many streams with retained messages of the user were observed.'),
    completeness: typed(CompletenessType, 'Whether the counts miss anything, from which source, and why.'),
    summaryCompleteness: t.field({
      type: CompletenessType,
      complexity: pageCost,
      description:
        'Whether first pages of this size miss any of the user’s connections or streams, from which source, and why.',
      args: { first: pageArguments.first },
      resolve: ({ id }, args, context) => {
        const { first } = pageOf(args);
        const { budget } = context;
        return both(connectionsOfUser(context, id, first), streamsOfUser(context, id, first), (connections, streams) =>
          completenessOf([
            ...cutSources(budget.page(connections, CONNECTION_SIZE), first),
            ...cutSources(budget.page(streams, null), first),
          ]),
        );
      },
    }),
    connections: t.field({
      type: ConnectionSnapshotConnection,
      description: 'The user’s connections, in order of client.',
      complexity: ({ first, status }) => scannedPageCost({ first }, scannedBy({ status })),
      args: {
        status: t.arg({ type: ConnectionStatusEnum, description: 'Only connections with this status.' }),
        ...pageArguments,
      },
      resolve: ({ id }, { status, ...asked }, context) => {
        const page = pageOf(asked);
        const { core, requester, reading } = context;
        return !status && !page.after
          ? connectionsOfUser(context, id, page.first)
          : core.connections.list(requester, { userId: id, status }, page, reading);
      },
    }),
    streams: t.field({
      type: StreamConnection,
      description: 'The user’s streams, in order of suffix.',
      complexity: pageCost,
      args: {
        prefix: t.arg.string({ description: 'Only streams whose suffix begins with this text.' }),
        ...pageArguments,
      },
      resolve: ({ id }, { prefix, ...asked }, context) => {
        const page = pageOf(asked);
        return !prefix && !page.after
          ? streamsOfUser(context, id, page.first)
          : context.core.history.streams(context.requester, id, prefix ?? null, page);
      },
    }),
    pendingRpcCount: t.int({
      description: 'How many callers still wait on clients of the user.',
      resolve: ({ id }, _, context) => thenDo(pendingOfUser.first(context, id, 1), ({ total }) => total),
    }),
    pendingRpcs: t.field({
      type: PendingRpcConnection,
      description: 'Callers that still wait on clients of the user, oldest first.',
      ...PAGED,
      resolve: ({ id }, page, context) => pendingOfUser.page(context, id, pageOf(page)),
    }),
  })),
});

/**
 * Returns the completeness sources of a first page. If the listing continues after the page, the first source, which is
 * the listing itself, is marked as incomplete.
 */
function cutSources({ completeness, hasNextPage, nodes }: Page<unknown>, first: number): readonly ObservedSource[] {
  const [own, ...gaps] = completeness.sources;
  if (!own || !hasNextPage) return completeness.sources;
  return [{ ...own, complete: false, observed: nodes.length, limit: first, reason: 'limit_reached' }, ...gaps];
}

const UserConnection = connectionOf('User', User, { rows: 'users' });

builder.queryFields((t) => ({
  users: t.field({
    type: UserConnection,
    description: 'Users with a connection or a retained stream, in order of user id. Administrators only.',
    complexity: forAdmins(pageCost),
    args: {
      ...pageArguments,
      text: t.arg.string({
        description: `Only users whose id contains this text, upper or lower case, at most ${FILTER_TEXT_CHARS} characters. A page reads ${PAGE_MAX} users, so it may be empty although a later one has a match.`,
      }),
    },
    resolve: (_, { text, ...page }, { core, requester }) => core.users.list(requester, pageOf(page), text ?? null),
  }),
  user: t.field({
    type: User,
    nullable: true,
    description:
      'One user; null if it has neither a connection nor a retained stream, or if the requester is another user. A user that reads itself always gets an answer.',
    args: { userId: t.arg.id({ required: true, description: 'The user’s id.' }) },
    resolve: (_, { userId }, { core, requester }) => core.users.get(requester, userId),
  }),
}));
