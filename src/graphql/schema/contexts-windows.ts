/** Browser windows that clients report: the type and the listings. */
import { windowStatus, type WindowStatus } from '../../core/contexts/context.ts';
import type { CountedWindow } from '../../core/contexts/store.ts';
import { CLIENT_WINDOWS, COUNT_SCAN } from '../../core/limits.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder } from './builder.ts';
import { ClientTypeEnum } from './connections.ts';
import { ExecutionContextConnection, OwnershipEnum } from './contexts.ts';
import { wireEnum } from './enums.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import {
  connectionOf,
  CountResult,
  pageArguments,
  pageCost,
  pageOf,
  scanCost,
  scannedBy,
  scannedPageCost,
} from './page.ts';
import { User } from './users.ts';

const WindowStatusEnum = wireEnum<WindowStatus>('WindowStatus', 'The status of a browser window.', {
  open: 'Its client reports it as open.',
  stale: 'It was last reported as open, but its client’s link is down or silent: nothing newer is known.',
  closed: 'Its client reports it as closed.',
});

type CountsFrom = 'contexts' | 'snapshot';

const CountsFromEnum = wireEnum<CountsFrom>('CountsFrom', 'The source of a window’s worker counts.', {
  contexts: 'The relay counts the contexts that the client reports now.',
  snapshot: 'The counts that the client reported with the window. They are used when it reports no contexts.',
});

const BrowserWindowType = builder.objectRef<CountedWindow>('BrowserWindow').implement({
  description:
    'A browser window as its client last reported it. It is current registry state, not history: the relay drops it when the client stops reporting it or when the client’s connection is forgotten or taken over by another instance.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.id({ ...NODE_ID, resolve: ({ window }) => nodeIdOf('BrowserWindow', window) }),
    windowId: t.id({
      description: 'The window’s id, unique within its client.',
      resolve: ({ window }) => window.windowId,
    }),
    userId: t.id({
      description: 'The id of the user that the client belongs to.',
      resolve: ({ window }) => window.userId,
    }),
    clientId: t.id({
      description: 'The id of the client that reports the window.',
      resolve: ({ window }) => window.clientId,
    }),
    instanceId: t.id({
      description: 'The id of the client instance that reported the window.',
      resolve: ({ window }) => window.instanceId,
    }),
    clientType: t.field({
      type: ClientTypeEnum,
      description: 'What kind of program the client is.',
      resolve: ({ window }) => window.clientType,
    }),
    ownership: t.field({
      type: OwnershipEnum,
      description: 'Whether the window is for the user or for work.',
      resolve: ({ window }) => window.ownership,
    }),
    focused: t.boolean({ description: 'Whether the window has the focus.', resolve: ({ window }) => window.focused }),
    type: t.string({
      description: 'The window’s type, as the browser names it.',
      resolve: ({ window }) => window.type,
    }),
    state: t.string({
      description: 'The window’s state, as the browser names it.',
      resolve: ({ window }) => window.state,
    }),
    incognito: t.boolean({
      description: 'Whether the window is incognito.',
      resolve: ({ window }) => window.incognito,
    }),
    tabCount: t.int({ description: 'How many tabs the window has.', resolve: ({ window }) => window.tabCount }),
    capacity: t.int({
      nullable: true,
      description: 'How many workers the window is configured for; null if the client sent no number.',
      resolve: ({ window }) => window.capacity,
    }),
    draining: t.boolean({
      description: 'Whether the window takes no more workers.',
      resolve: ({ window }) => window.draining,
    }),
    status: t.field({
      type: WindowStatusEnum,
      description:
        'The status that the client reported, or STALE while its link is down or silent, unless it reported CLOSED.',
      resolve: ({ window }) => windowStatus(window),
    }),
    workerCount: t.int({
      description:
        'How many worker contexts in the window are not closed; `countsFrom` names the source of the number.',
      resolve: ({ window, live }) => live?.workers ?? window.workerCount,
    }),
    idleCount: t.int({
      description:
        'How many worker contexts in the window are not closed and have no task; `countsFrom` names the source of the number.',
      resolve: ({ window, live }) => live?.idle ?? window.idleCount,
    }),
    busyCount: t.int({
      description:
        'How many worker contexts in the window are not closed and have a task; `countsFrom` names the source of the number.',
      resolve: ({ window, live }) => live?.busy ?? window.busyCount,
    }),
    countsFrom: t.field({
      type: CountsFromEnum,
      description: 'The source of `workerCount`, `idleCount` and `busyCount`.',
      resolve: ({ live }): CountsFrom => (live ? 'contexts' : 'snapshot'),
    }),
    contexts: t.field({
      type: ExecutionContextConnection,
      description: 'Execution contexts that the client reports in this window now.',
      complexity: pageCost,
      args: { ...pageArguments },
      resolve: ({ window: { userId, clientId, windowId } }, args, { core, requester, loaders, reading }) => {
        const page = pageOf(args);
        const query = { userId, clientId, windowId };
        return page.after ? core.contexts.list(requester, query, page, reading) : loaders.contexts(query, page.first);
      },
    }),
    reportedAt: t.field({
      type: 'DateTime',
      description: 'When the client last reported the window.',
      resolve: ({ window }) => window.reportedAt,
    }),
  }),
});

const BrowserWindowConnection = connectionOf('BrowserWindow', BrowserWindowType, { rows: 'browser windows' });

const BrowserWindowFilter = builder.inputType('BrowserWindowFilter', {
  description: 'Which windows to include. A window must match every member that is given.',
  fields: (t) => ({
    userId: t.id({
      description: 'Only rows of this user. Omitted: a user gets its own rows, an administrator gets all.',
    }),
    clientId: t.id({ description: 'Only windows of this client.' }),
    clientType: t.field({ type: ClientTypeEnum, description: 'Only windows of clients of this kind.' }),
    status: t.field({ type: WindowStatusEnum, description: 'Only windows with this status.' }),
    ownership: t.field({ type: OwnershipEnum, description: 'Only windows with this ownership.' }),
  }),
});

/** How many windows a filter may scan for a page: of one client, or of all. */
const WINDOWS_SCANNED = { most: SCAN_BUDGET, ofClient: CLIENT_WINDOWS };

const filterArgument = builder.args((t) => ({
  filter: t.field({
    type: BrowserWindowFilter,
    description: 'Which windows to include. Omitted: all that the requester may see.',
  }),
}));

builder.queryFields((t) => ({
  browserWindows: t.field({
    type: BrowserWindowConnection,
    description: 'Browser windows that clients report now, in order of user, client and window.',
    complexity: ({ filter, ...page }) => scannedPageCost(page, scannedBy(filter, WINDOWS_SCANNED)),
    args: { ...filterArgument, ...pageArguments },
    resolve: (_, { filter, ...page }, { core, requester, reading }) =>
      core.contexts.windows(requester, filter ?? {}, pageOf(page), reading),
  }),
  browserWindow: t.field({
    type: BrowserWindowType,
    nullable: true,
    description:
      'One browser window; null if there is none or it belongs to another user. If several clients report this window id, `clientId` is needed, and the error `ambiguous` says so.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user’s id.' }),
      windowId: t.arg.id({ required: true, description: 'The window’s id.' }),
      clientId: t.arg.id({ description: 'The client that reports the window. Omitted: any, if only one does.' }),
    },
    complexity: scanCost(SCAN_BUDGET),
    resolve: (_, { userId, windowId, clientId }, { core, requester, reading }) =>
      core.contexts.window(requester, userId, windowId, clientId, reading),
  }),
  browserWindowCount: t.field({
    type: CountResult,
    description: 'How many browser windows clients report now.',
    complexity: ({ filter }) => scanCost(scannedBy(filter, { ...WINDOWS_SCANNED, most: COUNT_SCAN })),
    args: { ...filterArgument },
    resolve: (_, { filter }, { core, requester, reading }) =>
      core.contexts.windowCount(requester, filter ?? {}, reading),
  }),
}));

builder.objectField(User, 'browserWindows', (t) =>
  t.field({
    type: BrowserWindowConnection,
    description: 'Browser windows that the user’s clients report now, in order of client and window.',
    complexity: ({ first, after: _, ...filter }) => scannedPageCost({ first }, scannedBy(filter)),
    args: {
      status: t.arg({ type: WindowStatusEnum, description: 'Only windows with this status.' }),
      ownership: t.arg({ type: OwnershipEnum, description: 'Only windows with this ownership.' }),
      ...pageArguments,
    },
    resolve: ({ id }, { status, ownership, ...paging }, { core, requester, loaders, reading }) => {
      const page = pageOf(paging);
      const query = { userId: id, status, ownership };
      return page.after ? core.contexts.windows(requester, query, page, reading) : loaders.windows(query, page.first);
    },
  }),
);
