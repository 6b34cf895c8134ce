/**
 * `shows`: the owner's things are in the answer. `empty`: an answer without any of them. `null`: the field is null. `count <n>`: so many
 * counted. Anything else is the code of an error, or `refused: <code>` of a typed refusal.
 */
export type Verdict = string;

/**
 * `admin`: administrators alone. `owned`: names whose things are asked for; whoever may not know of them gets what is absent.
 * `mine`: names nobody, so that each user is shown its own.
 */
export type Row =
  | { readonly rule: 'admin'; readonly call: string; readonly found: Verdict; readonly absent?: Verdict }
  | {
      readonly rule: 'owned';
      readonly call: string;
      readonly found: Verdict;
      /** For a user whose it is not, and where there is no such thing. */
      readonly missing: Verdict;
      /** For an administrator, where there is no such thing, if that differs. */
      readonly absent?: Verdict;
      /** An absent thing of the asker's own user answers the same as a foreign one. */
      readonly alikeAtHome?: true;
    }
  | {
      readonly rule: 'mine';
      readonly call: string;
      readonly found: Verdict;
      readonly admin?: Verdict;
      readonly other: Verdict;
    };

/** Each root field of queries and mutations, with example arguments. */
export const FIELDS: Readonly<Record<string, readonly Row[]>> = {
  'Query.viewer': [{ rule: 'mine', call: 'viewer', found: 'shows', admin: 'empty', other: 'empty' }],
  'Query.users': [{ rule: 'admin', call: 'users', found: 'shows' }],
  'Query.user': [{ rule: 'owned', call: 'user(id: $user)', found: 'shows', missing: 'null' }],
  'Query.connections': [
    { rule: 'mine', call: 'connections', found: 'shows', other: 'empty' },
    { rule: 'mine', call: 'connections(status: CONNECTED)', found: 'shows', other: 'empty' },
    { rule: 'owned', call: 'connections(userId: $user)', found: 'shows', missing: 'not_found', absent: 'empty' },
  ],
  'Query.connection': [
    {
      rule: 'owned',
      call: 'connection(userId: $user, clientId: $client)',
      found: 'shows',
      missing: 'null',
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
      missing: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.pendingRpcCount': [
    { rule: 'mine', call: 'pendingRpcCount(filter: { clientId: $client })', found: 'count 1', other: 'count 0' },
    {
      rule: 'owned',
      call: 'pendingRpcCount(filter: { userId: $user })',
      found: 'count 1',
      missing: 'not_found',
      absent: 'count 0',
    },
  ],
  'Query.pendingRpcCountByNode': [
    { rule: 'mine', call: 'pendingRpcCountByNode(filter: { clientId: $client })', found: 'count 1', other: 'count 0' },
    {
      rule: 'owned',
      call: 'pendingRpcCountByNode(filter: { userId: $user })',
      found: 'count 1',
      missing: 'not_found',
      absent: 'count 0',
    },
  ],
  'Query.streams': [
    { rule: 'owned', call: 'streams(userId: $user)', found: 'shows', missing: 'not_found', absent: 'empty' },
  ],
  'Query.messages': [
    { rule: 'owned', call: 'messages(stream: $stream)', found: 'shows', missing: 'not_found', alikeAtHome: true },
  ],
  'Query.commandHistory': [
    {
      rule: 'owned',
      call: 'commandHistory(userId: $user, commandId: $command)',
      found: 'shows',
      missing: 'not_found',
      absent: 'empty',
    },
  ],
  'Query.command': [
    {
      rule: 'owned',
      call: 'command(userId: $user, clientId: $client, commandId: $command)',
      found: 'shows',
      missing: 'null',
      alikeAtHome: true,
    },
  ],
  'Query.delivery': [{ rule: 'admin', call: 'delivery', found: 'shows' }],
  // Done to what is not there: the rows after these need the clients and the node.
  'Mutation.disconnectClient': [
    { rule: 'admin', call: 'disconnectClient(userId: $user, clientId: "nowhere")', found: 'not_found' },
  ],
  'Mutation.drainNode': [{ rule: 'admin', call: 'drainNode(nodeId: "nowhere")', found: 'not_found' }],
  'Mutation.invokeAction': [
    {
      rule: 'owned',
      // The command of this id has ended, so that the owner's call replays its outcome and runs nothing.
      call: 'invokeAction(input: { userId: $user, clientId: $client, action: $action, params: $params, commandId: $command })',
      found: 'shows',
      missing: 'not_found',
      absent: 'refused: not_connected',
    },
  ],
  'Mutation.awaitCommand': [
    {
      rule: 'owned',
      call: 'awaitCommand(userId: $user, clientId: $client, commandId: $command, withinMs: 0)',
      found: 'shows',
      missing: 'not_found',
      alikeAtHome: true,
    },
    {
      rule: 'owned',
      call: 'awaitCommand(userId: $user, clientId: $client, commandId: $command, withinMs: 1000)',
      found: 'shows',
      missing: 'not_found',
      alikeAtHome: true,
    },
  ],
  'Mutation.cancelCommand': [
    {
      rule: 'owned',
      // It is too late for it: the owner's call changes nothing.
      call: 'cancelCommand(input: { userId: $user, clientId: $client, commandId: $command, reason: "none" })',
      found: 'shows',
      missing: 'not_found',
      alikeAtHome: true,
    },
  ],
};

/** What each asker's stream begins with: `shows`, `silent` (until something happens) or the code of an error. */
export const SUBSCRIPTIONS: Readonly<
  Record<string, readonly { readonly call: string; readonly begins: 'shows' | 'silent'; readonly owned: boolean }[]>
> = {
  'Subscription.commandUpdates': [
    { call: 'commandUpdates(userId: $user, clientId: $client, commandId: $command)', begins: 'shows', owned: true },
  ],
  'Subscription.connectionEvents': [
    { call: 'connectionEvents', begins: 'silent', owned: false },
    { call: 'connectionEvents(userId: $user)', begins: 'silent', owned: true },
  ],
  'Subscription.pendingRpcAlerts': [
    { call: 'pendingRpcAlerts(olderThanMs: 1000)', begins: 'shows', owned: false },
    { call: 'pendingRpcAlerts(olderThanMs: 1000, userId: $user)', begins: 'shows', owned: true },
  ],
};
