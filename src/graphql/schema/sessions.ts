/** Sessions of sites: open, share, revoke, close, and tickets for event streams. */
import { notFound } from '../../core/errors.ts';
import { CONNECT_WITHIN_MS, RESPOND_WITHIN_MS, SESSION_TTL_SECONDS, TICKET_MS } from '../../core/limits.ts';
import type { LiveEvent } from '../../core/live.ts';
import type { NewToken, OpenedSession } from '../../core/sites/site-policy.ts';
import type { SiteEvent } from '../../core/sites/site.ts';
import { noteCommand, spanNoter } from '../../web/reply.ts';
import { textOfJson } from './builder-json.ts';
import { builder, fresh, ranged } from './builder.ts';
import { fieldsOf, fieldsOfPart, id, int, nullable, text, time } from './builder-fields.ts';
import type { Share } from './context.ts';
import { InvokeActionResult, PARENT_SPAN_ID, TRACE_ID, view, waitFor } from './invoke.ts';
import { PAGED, connectionOf, pageOf } from './page.ts';
import { orRefusal, refusalOf } from './refusal.ts';
import { GrantType, SESSION_SIZE, SessionStateEnum, SiteSessionType, SiteType, grantOf } from './sites.ts';

const SiteSessionConnection = connectionOf('SiteSession', SiteSessionType, {
  rows: 'sessions of a site',
  size: SESSION_SIZE,
});

builder.objectField(SiteType, 'sessions', (t) =>
  t.field({
    type: SiteSessionConnection,
    nullable: true,
    description:
      'The site’s sessions, oldest first, including those that ended within the last hour; null for the holder of a grant.',
    ...PAGED,
    resolve: (site, page, { core, requester }) =>
      site.seen === 'whole' ? core.sites.sessions(requester, site, pageOf(page)) : null,
  }),
);

builder.queryField('siteSession', (t) =>
  t.field({
    type: SiteSessionType,
    nullable: true,
    description: 'One session, for its owner, the holders of its grants and administrators; null for all others.',
    args: { sessionId: t.arg.id({ required: true, description: 'The session’s id.' }) },
    resolve: (_, { sessionId: id }, { core, requester }) => core.sites.session(requester, id),
  }),
);

const ttlSeconds = {
  description: `How long the session or grant lasts, ${SESSION_TTL_SECONDS.min} to ${SESSION_TTL_SECONDS.max} seconds.`,
  extensions: { minimum: SESSION_TTL_SECONDS.min, maximum: SESSION_TTL_SECONDS.max },
};

const OpenSiteSessionInput = builder.inputType('OpenSiteSessionInput', {
  description: 'A new session, and what its first grant allows.',
  fields: (t) => ({
    siteId: t.id({ required: true, description: 'The id of a site of the requester.' }),
    ttlSeconds: t.int({ ...ttlSeconds, description: `${ttlSeconds.description} Omitted: an hour.` }),
    events: t.stringList({ description: 'The event names of the first grant. Omitted: all that the site publishes.' }),
    actions: t.stringList({ description: 'The actions of the first grant. Omitted: all that the site allows now.' }),
  }),
});

const ShareSiteSessionInput = builder.inputType('ShareSiteSessionInput', {
  description: 'Another grant of a session. It allows no more than the giver’s own grant.',
  fields: (t) => ({
    sessionId: t.id({ required: true, description: 'The session’s id.' }),
    events: t.stringList({
      description: 'The names of the events that the holder may receive. Omitted: those of the giver.',
    }),
    actions: t.stringList({ description: 'The actions that the holder may invoke. Omitted: those of the giver.' }),
    share: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether the holder may share the session with others.',
    }),
    ttlSeconds: t.int({
      ...ttlSeconds,
      description: `${ttlSeconds.description} Never longer than the giver’s grant. Omitted: as long as the giver’s grant.`,
    }),
  }),
});

const OpenedSiteSession = builder.objectRef<OpenedSession>('OpenedSiteSession').implement({
  description: 'A new session with its first grant. The grant’s token is shown only here.',
  fields: fieldsOf((t) => ({
    sessionId: t.id({ description: 'The session’s id.', resolve: ({ view }) => view.session.sessionId }),
    grantId: t.id({ description: 'The id of the first grant.', resolve: ({ grant }) => grant.grantId }),
    token: text('The bearer token of the first grant. The relay keeps only a digest of it.'),
    state: t.field({
      type: SessionStateEnum,
      description: 'Whether the session can be used.',
      resolve: ({ view }) => view.state,
    }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'When the session and its first grant expire.',
      resolve: ({ grant }) => grant.expiresAt,
    }),
    session: t.field({ type: SiteSessionType, description: 'The new session.', resolve: ({ view }) => view }),
  })),
});

const SharedGrant = builder.objectRef<NewToken & { readonly sessionId: string }>('SharedGrant').implement({
  description: 'A new grant. Its token is shown only here.',
  fields: fieldsOf((t) => ({
    grantId: t.id({ description: 'The grant’s id.', resolve: ({ grant }) => grant.grantId }),
    token: text('The grant’s bearer token. The relay keeps only a digest of it.'),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'When the grant expires.',
      resolve: ({ grant }) => grant.expiresAt,
    }),
    grant: t.field({
      type: GrantType,
      description: 'What the grant allows.',
      resolve: ({ sessionId, grant }) => grantOf({ sessionId }, grant),
    }),
  })),
});

const OpenSiteSessionResult = orRefusal('OpenSiteSessionResult', OpenedSiteSession, 'The new session, or a refusal.');

const ShareSiteSessionResult = orRefusal('ShareSiteSessionResult', SharedGrant, 'The new grant, or a refusal.');

const RevokeGrantResult = builder.objectRef<readonly string[]>('RevokeGrantResult').implement({
  description: 'The revoked grants.',
  fields: (t) => ({
    revoked: t.idList({
      description: 'The ids of the grant and of all grants shared from it, without those that were revoked before.',
      resolve: (ids) => [...ids],
    }),
  }),
});

const SiteTicket = builder.objectRef<{ readonly ticket: string; readonly expiresAt: number }>('SiteTicket').implement({
  description:
    'A secret that opens one event stream instead of a token, for an `EventSource`, which cannot send a header.',
  fields: fieldsOf(() => ({
    ticket: text(
      'The ticket, sent as the query parameter `ticket`. It also works for reconnects of the EventSource that redeemed it.',
    ),
    expiresAt: time('When the ticket expires if it was not redeemed.'),
  })),
});

const sessionId = { required: true, description: 'The session’s id.' } as const;

builder.mutationFields((t) => ({
  openSiteSession: t.field({
    type: OpenSiteSessionResult,
    description: 'Opens a session of a site of the requester. Needs the scope `host`.',
    args: { input: t.arg({ type: OpenSiteSessionInput, required: true, description: 'The session to open.' }) },
    resolve: async (_, { input: { siteId, ...request } }, { core, requester }) =>
      (await core.sites.open(requester, siteId, request).catch(refusalOf)) ?? notFound(),
  }),
  closeSiteSession: t.field({
    type: SiteSessionType,
    description: 'Closes a session; its event streams end within a second. Only for its owner, with the scope `host`.',
    args: { sessionId: t.arg.id(sessionId) },
    resolve: async (_, { sessionId: id }, { core, requester }) => (await core.sites.close(requester, id)) ?? notFound(),
  }),
  shareSiteSession: t.field({
    type: ShareSiteSessionResult,
    description:
      'Gives another grant of a session. Only for its owner, and for the holder of a grant that may be shared.',
    args: { input: t.arg({ type: ShareSiteSessionInput, required: true, description: 'The grant to give.' }) },
    resolve: async (_, { input: { sessionId: id, ...request } }, { core, requester }) => {
      const given = (await core.sites.share(requester, id, request).catch(refusalOf)) ?? notFound();
      return 'kind' in given ? given : { ...given, sessionId: id };
    },
  }),
  revokeGrant: t.field({
    type: RevokeGrantResult,
    description:
      'Revokes a grant and all grants shared from it; their event streams end within a second. Only for the session’s owner, and for the holder of the grant or of one that it was shared from.',
    args: { sessionId: t.arg.id(sessionId), grantId: t.arg.id({ required: true, description: 'The grant’s id.' }) },
    resolve: async (_, { sessionId: id, grantId }, { core, requester }) =>
      (await core.sites.revoke(requester, id, grantId)) ?? notFound(),
  }),
  createSiteTicket: t.field({
    type: SiteTicket,
    description: `Creates a ticket for one event stream. It must be redeemed within ${TICKET_MS / 1000} seconds; the stream may then reconnect with it while the session and the grant last. Only for the session’s owner and the holders of its grants.`,
    args: { sessionId: t.arg.id(sessionId) },
    resolve: async (_, { sessionId: id }, { core, requester }) =>
      (await core.sites.ticket(requester, id)) ?? notFound(),
  }),
}));

// Declares what a viewer of a site may do: subscribe to the site's events (`siteEvents`), and invoke its actions
// (`invokeSiteAction`).

const SiteEventType = builder.objectRef<LiveEvent<SiteEvent>>('SiteEvent').implement({
  description:
    'A notification from a site’s host to its viewers. It is not state: a viewer that receives it queries what changed.',
  extensions: { shareable: true },
  fields: fieldsOf((t) => ({
    ...fieldsOfPart(t, 'event', {
      name: text('The event’s name.'),
      data: nullable.json('The data that the host sent with the event; null if it sent none.'),
      messageId: id('The id of the retained message, for requesters that may read the history.'),
      publishedAt: time('When the event was retained and published.'),
    }),
    missed: int(
      'At least how many events were lost since the previous one: those that the subscriber read too slowly, and one for each interruption between the relay and other relays.',
    ),
  })),
});

type EventsArgs = { readonly sessionId: string; readonly names?: readonly string[] | null };

/**
 * Viewers of different sessions share one stream of events if they may receive the same event names of the same site.
 */
const shareEvents: Share<EventsArgs> = async ({ sessionId, names }, { core, requester }) =>
  (await core.sites.listen(requester, sessionId, names ?? null)) ?? notFound();

builder.subscriptionField('siteEvents', (t) =>
  t.field({
    type: SiteEventType,
    description:
      'Events of a session’s site, from now on, without replay. Ends with `session_inactive` when the session ends, and with `unauthenticated` when the grant or the token ends.',
    args: {
      sessionId: t.arg.id({ required: true, description: 'The session’s id.' }),
      names: t.arg.stringList({
        description:
          'Only events with these names, as far as they are granted. Omitted: all that the requester may receive.',
      }),
    },
    extensions: { share: shareEvents },
    subscribe: async (_, { sessionId, names }, { core, requester }) =>
      (await core.sites.subscribe(requester, sessionId, names ?? null)) ?? notFound(),
    resolve: fresh,
  }),
);

const InvokeSiteActionInput = builder.inputType('InvokeSiteActionInput', {
  description:
    'An invocation of an action of a session’s site. The relay adds the ids of the session and the site to the params.',
  fields: (t) => ({
    sessionId: t.id({ required: true, description: 'The session’s id. The session must be active.' }),
    action: t.string({ required: true, description: 'The name of an action that the site and the grant allow.' }),
    params: t.field({ type: 'JSON', description: 'The action’s arguments, a JSON object. Omitted: none.' }),
    commandId: t.id({
      description:
        'The caller’s own id for the command, which makes the call safe to repeat with the same grant. Omitted: the relay generates one.',
    }),
    instanceId: t.id({ description: 'The id of the host’s instance that must be live. Omitted: any instance.' }),
    waitFor: t.field(waitFor),
    connectWithinMs: t.int({
      ...ranged(CONNECT_WITHIN_MS),
      description: `How long the command may wait for a host that disconnects after the call was accepted, ${CONNECT_WITHIN_MS.min} to ${CONNECT_WITHIN_MS.max} milliseconds.`,
    }),
    respondWithinMs: t.int({
      ...ranged(RESPOND_WITHIN_MS),
      description: `How long the host may take, ${RESPOND_WITHIN_MS.min} to ${RESPOND_WITHIN_MS.max} milliseconds.`,
    }),
    traceId: t.string(TRACE_ID),
    parentSpanId: t.string(PARENT_SPAN_ID),
  }),
});

builder.mutationField('invokeSiteAction', (t) =>
  t.field({
    type: InvokeActionResult,
    description:
      'Invokes an allowed action on the host of a session’s site, and waits for what `waitFor` names. Once admitted, it is a command like any other, for the owner’s client.',
    args: { input: t.arg({ type: InvokeSiteActionInput, required: true, description: 'The invocation.' }) },
    resolve: async (_, { input: { sessionId, ...request } }, { core, requester, signal, notes, trace }) => {
      const params = textOfJson(request.params);
      const traced = { trace, onSpan: spanNoter(notes) };
      const invocation = await core.sites.invoke(requester, sessionId, { ...request, params, signal, ...traced });
      return view(noteCommand(notes, invocation ?? notFound()), false);
    },
  }),
);
