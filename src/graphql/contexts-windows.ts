import { windowStatus, type WindowStatus } from '../core/contexts/context.ts';
import type { CountedWindow } from '../core/contexts/store.ts';
import { builder } from './builder.ts';
import { ClientTypeEnum } from './connections.ts';
import { ExecutionContextConnection, OwnershipEnum } from './contexts.ts';
import { wireEnum } from './enums.ts';
import { connectionOf, CountResult, pageArguments, pageCost, pageOf } from './page.ts';
import { User } from './users.ts';

const WindowStatusEnum = wireEnum<WindowStatus>('WindowStatus', 'How a browser window stands.', {
  open: 'Its client reports it as open.',
  stale: 'It was reported and not closed, but the link of its client is down or silent: nothing newer is known.',
  closed: 'Its client reports it as closed.',
});

type CountsFrom = 'contexts' | 'snapshot';

const CountsFromEnum = wireEnum<CountsFrom>('CountsFrom', 'Where the counts of a window come from.', {
  contexts: 'They are derived from the contexts that the client reports now.',
  snapshot: 'They are the client’s own, as stored with the window: it reports no contexts.',
});

const BrowserWindowType = builder.objectRef<CountedWindow>('BrowserWindow').implement({
  description:
    'A browser window as its client last reported it. It is current registry state and no history: it vanishes when the client stops reporting it, and with its client.',
  fields: (t) => ({
    id: t.id({ description: 'The window; unique within its client.', resolve: ({ window }) => window.windowId }),
    userId: t.id({ description: 'The user of the client.', resolve: ({ window }) => window.userId }),
    clientId: t.id({ description: 'The client that reports it.', resolve: ({ window }) => window.clientId }),
    instanceId: t.id({
      description: 'The run of the client that reported it.',
      resolve: ({ window }) => window.instanceId,
    }),
    clientType: t.field({
      type: ClientTypeEnum,
      description: 'What kind of program its client is.',
      resolve: ({ window }) => window.clientType,
    }),
    ownership: t.field({
      type: OwnershipEnum,
      description: 'Whose it is.',
      resolve: ({ window }) => window.ownership,
    }),
    focused: t.boolean({ description: 'Whether it has the focus.', resolve: ({ window }) => window.focused }),
    type: t.string({ description: 'Its type, in the platform’s words.', resolve: ({ window }) => window.type }),
    state: t.string({ description: 'Its state, in the platform’s words.', resolve: ({ window }) => window.state }),
    incognito: t.boolean({ description: 'Whether it is incognito.', resolve: ({ window }) => window.incognito }),
    tabCount: t.int({ description: 'How many tabs it has.', resolve: ({ window }) => window.tabCount }),
    capacity: t.int({
      nullable: true,
      description: 'How many workers it is configured for; null where it is not.',
      resolve: ({ window }) => window.capacity,
    }),
    draining: t.boolean({
      description: 'Whether it takes no further workers.',
      resolve: ({ window }) => window.draining,
    }),
    status: t.field({
      type: WindowStatusEnum,
      description: 'As reported, or stale while the client’s link is down or silent.',
      resolve: ({ window }) => windowStatus(window),
    }),
    workerCount: t.int({
      description: 'Its worker contexts that are not closed; `countsFrom` says by what.',
      resolve: ({ window, live }) => live?.workers ?? window.workerCount,
    }),
    idleCount: t.int({
      description: 'Those of its workers that have no task; `countsFrom` says by what.',
      resolve: ({ window, live }) => live?.idle ?? window.idleCount,
    }),
    busyCount: t.int({
      description: 'Those of its workers that have a task; `countsFrom` says by what.',
      resolve: ({ window, live }) => live?.busy ?? window.busyCount,
    }),
    countsFrom: t.field({
      type: CountsFromEnum,
      description: 'Where the three counts come from.',
      resolve: ({ live }): CountsFrom => (live ? 'contexts' : 'snapshot'),
    }),
    contexts: t.field({
      type: ExecutionContextConnection,
      description: 'Execution contexts that its client reports in it now.',
      complexity: pageCost,
      args: { ...pageArguments },
      resolve: ({ window: { userId, clientId, windowId } }, asked, { core, who, loaders }) => {
        const page = pageOf(asked);
        const query = { userId, clientId, windowId };
        return page.after ? core.contexts.list(who, query, page) : loaders.contexts(query, page.first);
      },
    }),
    reportedAt: t.field({
      type: 'DateTime',
      description: 'When it was last reported.',
      resolve: ({ window }) => window.reportedAt,
    }),
  }),
});

const BrowserWindowConnection = connectionOf('BrowserWindow', BrowserWindowType, { rows: 'browser windows' });

const BrowserWindowFilter = builder.inputType('BrowserWindowFilter', {
  description: 'Which windows to show; each member narrows.',
  fields: (t) => ({
    userId: t.id({ description: 'Only this user’s; omitted, a user’s own and an administrator’s all.' }),
    clientId: t.id({ description: 'Only those of this client.' }),
    clientType: t.field({ type: ClientTypeEnum, description: 'Only those of clients of this kind.' }),
    status: t.field({ type: WindowStatusEnum, description: 'Only those with this status.' }),
    ownership: t.field({ type: OwnershipEnum, description: 'Only those of this ownership.' }),
  }),
});

const filterArgument = builder.args((t) => ({
  filter: t.field({ type: BrowserWindowFilter, description: 'Which to show; omitted, all that the asker may see.' }),
}));

builder.queryFields((t) => ({
  browserWindows: t.field({
    type: BrowserWindowConnection,
    description: 'Browser windows that clients report now, in order of user, client and window.',
    complexity: pageCost,
    args: { ...filterArgument, ...pageArguments },
    resolve: (_, { filter, ...page }, { core, who }) => core.contexts.windows(who, filter ?? {}, pageOf(page)),
  }),
  browserWindow: t.field({
    type: BrowserWindowType,
    nullable: true,
    description:
      'One browser window, of several clients’ the first in order of client; null when there is none, or it is another user’s.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user.' }),
      windowId: t.arg.id({ required: true, description: 'The window.' }),
    },
    resolve: (_, { userId, windowId }, { core, who }) => core.contexts.window(who, userId, windowId),
  }),
  browserWindowCount: t.field({
    type: CountResult,
    description: 'How many browser windows clients report now.',
    args: { ...filterArgument },
    resolve: (_, { filter }, { core, who }) => core.contexts.windowCount(who, filter ?? {}),
  }),
}));

builder.objectField(User, 'browserWindows', (t) =>
  t.field({
    type: BrowserWindowConnection,
    description: 'Browser windows that the user’s clients report now, in order of client and window.',
    complexity: pageCost,
    args: {
      status: t.arg({ type: WindowStatusEnum, description: 'Only those with this status.' }),
      ownership: t.arg({ type: OwnershipEnum, description: 'Only those of this ownership.' }),
      ...pageArguments,
    },
    resolve: ({ id }, { status, ownership, ...asked }, { core, who, loaders }) => {
      const page = pageOf(asked);
      const query = { userId: id, status, ownership };
      return page.after ? core.contexts.windows(who, query, page) : loaders.windows(query, page.first);
    },
  }),
);
