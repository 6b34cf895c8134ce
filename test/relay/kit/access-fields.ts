/** Lists who may call which GraphQL field, and with which answer. */
import { HAS_DEVICES, HAS_PAUSES, HAS_REVOCATIONS } from '../../kit/store.ts';

// Defines a row in the access table of GraphQL fields: a call, and the answer that each requester must get.

/**
 * The expected answer. `shows`: it contains the owner's rows. `empty`: it contains none of them. `null`: the field is
 * null. `count <n>`: it has this number of rows. Any other text is a code: of an error of a query, of the
 * typed refusal of a mutation.
 */
export type Verdict = string;

/**
 * A call of a field, who may make it, and the expected answers. `admin`: only administrators. `owned`: the call names
 * an owner, and other users get the answer for absent rows. `mine`: the call names no user, and each user sees their
 * own rows. `session`: the call names a session, which its owner and the holders of its grants may use.
 */
export type FieldAccess = {
  readonly rule: 'admin' | 'owned' | 'mine' | 'session';
  readonly call: string;
  /** The answer for the owner, or for `admin` the answer for an administrator. */
  readonly found: Verdict;
  /** The scope that a user needs; by default `invoke`. */
  readonly scope?: 'host';
  /** The answer for another user. For `owned` and `session`, also the answer for absent rows. */
  readonly other?: Verdict;
  /** The answer for an administrator, if it differs from the owner's. */
  readonly admin?: Verdict;
  /** The answer for an administrator about absent rows, if it differs from `other`. */
  readonly absent?: Verdict;
  /** The answer for the holder of a grant, if it differs from the owner's. */
  readonly viewer?: Verdict;
  /** Whether the requester gets the same answer for an absent row of their own as for a row of another user. */
  readonly alikeAtHome?: true;
  /** Whether the call would remove what later rows need. If so, only requesters without permission send it. */
  readonly harmful?: true;
};

// Lists who may call which GraphQL field of sites, and with which answer.

/** The root fields of sites and of their sessions, with example calls. */
const SITE_FIELDS: Readonly<Record<string, readonly FieldAccess[]>> = {
  'Query.sites': [
    { rule: 'mine', call: 'sites', found: 'shows', other: 'empty' },
    { rule: 'owned', call: 'sites(userId: $user)', found: 'shows', other: 'not_found', absent: 'empty' },
  ],
  'Query.site': [
    { rule: 'owned', call: 'site(owner: $user, siteId: $site)', found: 'shows', other: 'null', alikeAtHome: true },
    { rule: 'mine', call: 'site(siteId: $site)', found: 'shows', admin: 'invalid_argument', other: 'null' },
  ],
  'Query.siteSession': [{ rule: 'session', call: 'siteSession(sessionId: $session)', found: 'shows', other: 'null' }],
  'Mutation.registerSite': [
    {
      rule: 'mine',
      scope: 'host',
      call: 'registerSite(input: { siteId: "fresh", clientId: "loose" })',
      found: 'shows',
      admin: 'forbidden',
      other: 'empty',
    },
  ],
  'Mutation.removeSite': [
    {
      rule: 'mine',
      scope: 'host',
      call: 'removeSite(siteId: $site)',
      found: '',
      admin: 'forbidden',
      other: 'not_found',
      harmful: true,
    },
  ],
  'Mutation.openSiteSession': [
    {
      rule: 'mine',
      scope: 'host',
      call: 'openSiteSession(input: { siteId: $site })',
      found: 'shows',
      admin: 'forbidden',
      other: 'not_found',
    },
  ],
  'Mutation.closeSiteSession': [
    {
      rule: 'session',
      scope: 'host',
      call: 'closeSiteSession(sessionId: $session)',
      found: '',
      admin: 'forbidden',
      viewer: 'forbidden',
      other: 'not_found',
      harmful: true,
    },
  ],
  'Mutation.shareSiteSession': [
    {
      rule: 'session',
      scope: 'host',
      call: 'shareSiteSession(input: { sessionId: $session })',
      found: 'shows',
      admin: 'forbidden',
      other: 'not_found',
    },
  ],
  'Mutation.revokeGrant': [
    {
      rule: 'session',
      scope: 'host',
      call: 'revokeGrant(sessionId: $session, grantId: $grant)',
      found: '',
      admin: 'forbidden',
      other: 'not_found',
      harmful: true,
    },
  ],
  'Mutation.createSiteTicket': [
    {
      rule: 'session',
      call: 'createSiteTicket(sessionId: $session)',
      found: 'empty',
      admin: 'forbidden',
      other: 'not_found',
    },
  ],
  'Mutation.invokeSiteAction': [
    {
      rule: 'session',
      // The site does not offer this action, so the owner's call runs nothing.
      call: 'invokeSiteAction(input: { sessionId: $session, action: "none.such" })',
      found: 'site_action_denied',
      admin: 'forbidden',
      other: 'not_found',
    },
  ],
};

/** The root fields of queries and mutations, each with example arguments. */
export const FIELDS: Readonly<Record<string, readonly FieldAccess[]>> = {
  'Query.viewer': [{ rule: 'mine', call: 'viewer', found: 'shows', admin: 'empty', other: 'empty' }],
  'Query.flapping': [{ rule: 'admin', call: 'flapping', found: 'empty' }],
  'Query.topClients': [{ rule: 'admin', call: 'topClients(by: BACKLOG)', found: 'shows' }],
  'Query.series': [{ rule: 'admin', call: 'series(names: ["commands_ended"], windowSeconds: 60)', found: 'empty' }],
  'Query.server': [{ rule: 'mine', call: 'server', found: 'empty', other: 'empty' }],
  'Query.users': [{ rule: 'admin', call: 'users', found: 'shows' }],
  'Query.user': [{ rule: 'owned', call: 'user(userId: $user)', found: 'shows', other: 'null' }],
  // The query selects only the id, so a row that is shown looks empty.
  'Query.node': [
    { rule: 'owned', call: 'node(id: $nodeOfClient)', found: 'empty', other: 'null', alikeAtHome: true },
    { rule: 'session', call: 'node(id: $nodeOfSession)', found: 'empty', other: 'null' },
  ],
  'Query.nodes': [
    { rule: 'owned', call: 'nodes(ids: [$nodeOfClient])', found: 'empty', other: 'empty', alikeAtHome: true },
    { rule: 'session', call: 'nodes(ids: [$nodeOfSession])', found: 'empty', other: 'empty' },
  ],
  'Query.connections': [
    { rule: 'mine', call: 'connections', found: 'shows', other: 'empty' },
    { rule: 'mine', call: 'connections(status: CONNECTED)', found: 'shows', other: 'empty' },
    { rule: 'owned', call: 'connections(userId: $user)', found: 'shows', other: 'not_found', absent: 'empty' },
  ],
  'Query.connection': [
    {
      rule: 'owned',
      call: 'connection(userId: $user, clientId: $client)',
      found: 'shows',
      other: 'null',
      alikeAtHome: true,
    },
  ],
  'Query.actions': [{ rule: 'admin', call: 'actions', found: 'shows' }],
  'Query.pendingRpcs': [
    { rule: 'mine', call: 'pendingRpcs', found: 'shows', other: 'empty' },
    { rule: 'mine', call: 'pendingRpcs(filter: { clientId: $client })', found: 'shows', other: 'empty' },
    {
      rule: 'owned',
      call: 'pendingRpcs(filter: { userId: $user })',
      found: 'shows',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.pendingRpcCount': [
    { rule: 'mine', call: 'pendingRpcCount(filter: { clientId: $client })', found: 'count 1', other: 'count 0' },
    {
      rule: 'owned',
      call: 'pendingRpcCount(filter: { userId: $user })',
      found: 'count 1',
      other: 'not_found',
      absent: 'count 0',
    },
  ],
  'Query.pendingRpcCountByNode': [
    { rule: 'mine', call: 'pendingRpcCountByNode(filter: { clientId: $client })', found: 'count 1', other: 'count 0' },
    {
      rule: 'owned',
      call: 'pendingRpcCountByNode(filter: { userId: $user })',
      found: 'count 1',
      other: 'not_found',
      absent: 'count 0',
    },
  ],
  'Query.streams': [
    { rule: 'owned', call: 'streams(userId: $user)', found: 'shows', other: 'not_found', absent: 'empty' },
  ],
  'Query.messages': [
    { rule: 'owned', call: 'messages(stream: $stream)', found: 'shows', other: 'not_found', alikeAtHome: true },
  ],
  'Query.commandHistory': [
    {
      rule: 'owned',
      call: 'commandHistory(userId: $user, commandId: $command)',
      found: 'shows',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.command': [
    {
      rule: 'owned',
      call: 'command(userId: $user, clientId: $client, commandId: $command)',
      found: 'shows',
      other: 'null',
      alikeAtHome: true,
    },
  ],
  'Query.commands': [
    { rule: 'mine', call: 'commands', found: 'shows', other: 'empty' },
    { rule: 'mine', call: 'commands(order: NEWEST, filter: { clientId: $client })', found: 'shows', other: 'empty' },
    {
      rule: 'owned',
      call: 'commands(filter: { userId: $user })',
      found: 'shows',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.findCommands': [{ rule: 'mine', call: 'findCommands(idOrTrace: $command)', found: 'shows', other: 'empty' }],
  'Query.delivery': [{ rule: 'admin', call: 'delivery', found: 'shows' }],
  // The calls name absent rows, because later rows of the table need the clients and the node.
  'Mutation.disconnectClient': [
    { rule: 'admin', call: 'disconnectClient(userId: $user, clientId: "nowhere")', found: 'not_found' },
  ],
  'Mutation.drainNode': [{ rule: 'admin', call: 'drainNode(nodeId: "nowhere")', found: 'not_found' }],
  'Query.context': [
    {
      rule: 'owned',
      call: 'context(userId: $user, clientId: $client, contextId: $context)',
      found: 'shows',
      other: 'null',
      alikeAtHome: true,
    },
  ],
  'Query.actionPermissions': [
    {
      rule: 'owned',
      call: 'actionPermissions(userId: $user, actions: [$action])',
      found: 'shows',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.contexts': [
    { rule: 'mine', call: 'contexts', found: 'shows', other: 'empty' },
    { rule: 'mine', call: 'contexts(filter: { windowId: $window })', found: 'shows', other: 'empty' },
    {
      rule: 'owned',
      call: 'contexts(filter: { userId: $user })',
      found: 'shows',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.contextCount': [
    { rule: 'mine', call: 'contextCount(filter: { clientId: $client })', found: 'count 2', other: 'count 0' },
    {
      rule: 'owned',
      call: 'contextCount(filter: { userId: $user })',
      found: 'count 2',
      other: 'not_found',
      absent: 'count 0',
    },
  ],
  'Query.browserWindows': [
    { rule: 'mine', call: 'browserWindows', found: 'shows', other: 'empty' },
    {
      rule: 'owned',
      call: 'browserWindows(filter: { userId: $user })',
      found: 'shows',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.browserWindow': [
    {
      rule: 'owned',
      call: 'browserWindow(userId: $user, windowId: $window)',
      found: 'shows',
      other: 'null',
      alikeAtHome: true,
    },
  ],
  'Query.browserWindowCount': [
    { rule: 'mine', call: 'browserWindowCount(filter: { clientId: $client })', found: 'count 1', other: 'count 0' },
    {
      rule: 'owned',
      call: 'browserWindowCount(filter: { userId: $user })',
      found: 'count 1',
      other: 'not_found',
      absent: 'count 0',
    },
  ],
  'Query.workers': [
    { rule: 'owned', call: 'workers(userId: $user)', found: 'shows', other: 'not_found', absent: 'empty' },
  ],
  'Query.dedup': [{ rule: 'admin', call: 'dedup', found: 'empty' }],
  'Query.rawMessages': [
    { rule: 'admin', call: 'rawMessages', found: 'shows' },
    { rule: 'admin', call: 'rawMessages(stream: $stream, valuesOnly: true)', found: 'shows' },
  ],
  'Mutation.ingestMessages': [
    {
      rule: 'mine',
      scope: 'host',
      call: 'ingestMessages(messages: [{ kind: "event", streamSuffix: "notes", clientId: "loose", instanceId: "i" }])',
      found: 'shows',
      admin: 'forbidden',
      other: 'empty',
    },
  ],
  ...SITE_FIELDS,
  'Mutation.invokeAction': [
    {
      rule: 'owned',
      // The command with this id has ended, so the owner's call replays its outcome and runs nothing.
      call: 'invokeAction(input: { userId: $user, clientId: $client, action: $action, params: $params, commandId: $command })',
      found: 'shows',
      other: 'not_found',
      absent: 'not_connected',
    },
  ],
  'Query.auditEvents': [
    { rule: 'mine', call: 'auditEvents', found: 'shows', other: 'empty' },
    {
      rule: 'owned',
      call: 'auditEvents(filter: { userId: $user })',
      found: 'shows',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.revocations': [{ rule: 'admin', call: 'revocations', found: HAS_REVOCATIONS ? 'shows' : 'empty' }],
  'Query.devices': [
    { rule: 'mine', call: 'devices', found: HAS_DEVICES ? 'shows' : 'empty', other: 'empty' },
    {
      rule: 'owned',
      call: 'devices(userId: $user)',
      found: HAS_DEVICES ? 'shows' : 'empty',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  // Open to everybody: a proof counts, which devices.test.ts tests.
  ...{ 'Mutation.enrol': [], 'Mutation.deviceToken': [] },
  'Mutation.lookUpEnrolment': !HAS_DEVICES
    ? []
    : [{ rule: 'mine', call: 'lookUpEnrolment(userCode: "BCDF-GHJK")', found: 'not_found', other: 'not_found' }],
  // Users need the scope `connect` as well, which devices.test.ts tests.
  'Mutation.decideEnrolment': [
    {
      rule: 'admin',
      call: 'decideEnrolment(input: { userCode: "BCDF-GHJK", decision: DENY, userId: $user })',
      found: 'not_found',
      harmful: true,
    },
  ],
  'Mutation.renameDevice': !HAS_DEVICES
    ? []
    : [
        {
          rule: 'owned',
          call: 'renameDevice(userId: $user, clientId: $client, deviceName: "Hall")',
          found: 'not_found',
          other: 'not_found',
        },
      ],
  'Mutation.removeDevice': !HAS_DEVICES
    ? []
    : [
        {
          rule: 'owned',
          call: 'removeDevice(userId: $user, clientId: $client)',
          found: 'not_found',
          other: 'not_found',
        },
      ],
  'Mutation.revoke': [
    {
      rule: 'owned',
      call: 'revoke(input: { userId: $user, tokenId: "none", reason: "none" })',
      found: 'shows',
      other: 'not_found',
      harmful: true,
    },
  ],
  'Query.auditCheck': [{ rule: 'admin', call: 'auditCheck', found: 'empty' }],
  'Query.auditChain': [{ rule: 'admin', call: 'auditChain', found: 'shows' }],
  'Mutation.revealPayload': [
    {
      rule: 'owned',
      call: 'revealPayload(input: { subject: COMMAND_RESULT, userId: $user, clientId: $client, commandId: $command, reason: "the access test" })',
      found: 'shows',
      other: 'not_found',
      alikeAtHome: true,
    },
  ],
  'Query.preflightInvocation': [
    {
      rule: 'owned',
      call: 'preflightInvocation(input: { userId: $user, clientId: $client, action: $action, params: $params, commandId: $command })',
      found: 'shows',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Mutation.awaitCommand': [
    {
      rule: 'owned',
      call: 'awaitCommand(userId: $user, clientId: $client, commandId: $command, withinMs: 0)',
      found: 'shows',
      other: 'not_found',
      alikeAtHome: true,
    },
    {
      rule: 'owned',
      call: 'awaitCommand(userId: $user, clientId: $client, commandId: $command, withinMs: 1000)',
      found: 'shows',
      other: 'not_found',
      alikeAtHome: true,
    },
  ],
  'Query.pauses': [
    { rule: 'mine', call: 'pauses', found: HAS_PAUSES ? 'shows' : 'empty', other: 'empty' },
    {
      rule: 'owned',
      call: 'pauses(userId: $user)',
      found: HAS_PAUSES ? 'shows' : 'empty',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.pauseReach': [
    {
      rule: 'owned',
      call: 'pauseReach(cover: { userId: $user })',
      found: 'empty',
      other: 'not_found',
      absent: 'empty',
    },
  ],
  'Mutation.pauseCalls': [
    {
      rule: 'owned',
      call: 'pauseCalls(input: { cover: { userId: $user, clientId: "none" }, reason: "none" })',
      found: 'shows',
      other: 'not_found',
      harmful: true,
    },
  ],
  'Mutation.resumeCalls': [
    { rule: 'owned', call: 'resumeCalls(pauseId: $pause)', found: 'shows', other: 'not_found', harmful: true },
  ],
  'Mutation.cancelCommand': [
    {
      rule: 'owned',
      // The command has ended, so the owner's call changes nothing.
      call: 'cancelCommand(input: { userId: $user, clientId: $client, commandId: $command, reason: "none" })',
      found: 'shows',
      other: 'not_found',
      alikeAtHome: true,
    },
  ],
};
