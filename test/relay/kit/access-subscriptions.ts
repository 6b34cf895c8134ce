/** Lists who may use which GraphQL subscription. */

/**
 * A row of the access table of subscriptions. `silent`: the subscription yields nothing until something happens.
 * `seenBy`: who may subscribe besides the owner: `admin`, or the holder of a grant. `owned`: the subscription names an
 * owner, who may be another user.
 */
export type Live = {
  readonly call: string;
  readonly begins: 'shows' | 'silent';
  readonly owned: boolean;
  readonly seenBy: 'admin' | 'viewer';
};

/** The subscriptions, each with example arguments. */
export const SUBSCRIPTIONS: Readonly<Record<string, readonly Live[]>> = {
  'Subscription.commandUpdates': [
    {
      call: 'commandUpdates(userId: $user, clientId: $client, commandId: $command)',
      begins: 'shows',
      owned: true,
      seenBy: 'admin',
    },
  ],
  'Subscription.commandEvents': [
    { call: 'commandEvents', begins: 'silent', owned: false, seenBy: 'admin' },
    { call: 'commandEvents(filter: { userId: $user })', begins: 'silent', owned: true, seenBy: 'admin' },
  ],
  'Subscription.connectionEvents': [
    { call: 'connectionEvents', begins: 'silent', owned: false, seenBy: 'admin' },
    { call: 'connectionEvents(userId: $user)', begins: 'silent', owned: true, seenBy: 'admin' },
  ],
  'Subscription.pendingRpcAlerts': [
    { call: 'pendingRpcAlerts(olderThanMs: 1000)', begins: 'shows', owned: false, seenBy: 'admin' },
    { call: 'pendingRpcAlerts(olderThanMs: 1000, userId: $user)', begins: 'shows', owned: true, seenBy: 'admin' },
  ],
  'Subscription.siteEvents': [
    { call: 'siteEvents(sessionId: $session)', begins: 'silent', owned: true, seenBy: 'viewer' },
  ],
};
