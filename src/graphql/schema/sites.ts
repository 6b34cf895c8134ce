/** Cooperative sites: their registration, sessions, grants, tickets, events and invocations. */
import { notFound } from '../../core/errors.ts';
import {
  CONNECT_WITHIN_MS,
  GRANTS_PER_SESSION,
  RESPOND_WITHIN_MS,
  SESSION_TTL_SECONDS,
  SITES_PER_USER,
  TICKET_MS,
} from '../../core/limits.ts';
import type { LiveEvent } from '../../core/live.ts';
import type { NewToken, OpenedSession, SessionView, SiteView } from '../../core/sites/site-requests.ts';
import type { Grant, SessionState, SiteSession } from '../../core/sites/site-session.ts';
import type { CapabilityProfile, SiteEvent } from '../../core/sites/site.ts';
import { noteCommand, spanNoter } from '../../web/request-notes.ts';
import {
  fieldsOf,
  fieldsOfPart,
  flag,
  id,
  int,
  nullable,
  text,
  texts,
  time,
  typed,
  builder,
  fresh,
  ranged,
  wireEnum,
  textOfJson,
  NODE_ID,
  NodeInterface,
  nodeIdOf,
} from './builder.ts';
import { ConnectionSnapshot, loadSized } from './connections.ts';
import { loadPagesBy, type Share, type RowSize } from './context.ts';
import { InvokeActionResult, PARENT_SPAN_ID, TRACE_ID, view, waitFor } from './calls.ts';
import { CompletenessType, PAGED, ROWS_OF_USER, connectionOf, pageArguments, pageCost, pageOf } from './page.ts';
import { answered, orRefusal } from './refusal.ts';
import { User } from './users.ts';

// Estimates the size of a site or a session in an answer, for the answer's budget of bytes.

/** The size of a site in an answer. A site lists up to 256 names of each kind. */
export const SITE_SIZE: RowSize<SiteView> = {
  fields: ['eventNames', 'actions'],
  bytes: ({ eventNames, actions }, asks) =>
    (asks('eventNames') ? namesBytes(eventNames) : 0) + (asks('actions') ? namesBytes(actions) : 0),
};

/** Returns the approximate size of the names as a JSON list: their characters, quotes and commas. */
function namesBytes(names: readonly string[]): number {
  return names.reduce((sum, name) => sum + name.length + 3, 0);
}

/** The size of a session in an answer: as large as its grants and its site. */
export const SESSION_SIZE: RowSize<SessionView> = {
  fields: ['grants', 'site'],
  bytes: ({ grants, site }, asks) =>
    (asks('grants') ? (grants ?? []).reduce((sum, grant) => sum + grantBytes(grant), 0) : 0) +
    (asks('site') && site ? SITE_SIZE.bytes(site, asks) : 0),
};

/** The approximate number of bytes that a grant takes in an answer besides its names. */
const GRANT_BYTES = 256;

function grantBytes({ events, actions }: Grant): number {
  return GRANT_BYTES + namesBytes(events ?? []) + namesBytes(actions ?? []);
}

const CapabilityProfileType = builder.objectRef<CapabilityProfile>('CapabilityProfile').implement({
  description: 'What a site lets its viewers do besides reading events.',
  fields: fieldsOf(() => ({
    actionInvocation: flag('Whether viewers may invoke the site’s allowed actions.'),
    sharing: flag('Whether sessions of the site may be shared.'),
  })),
});

/**
 * Returns the id of a site. The key of a site names its owner, so the holder of a grant gets an id that names the
 * session instead.
 */
function nodeIdOfSite(site: SiteView): string {
  return site.seen === 'whole' ? nodeIdOf('Site', site) : nodeIdOf('SiteOfSession', site);
}

export const SiteType = builder.objectRef<SiteView>('Site').implement({
  description:
    'A cooperative site as its owner defined it. The holder of a grant sees the id, mode, title and profile, and the names that the grant allows; the owner, client, host and registration time are null.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: nodeIdOfSite }),
    siteId: id('The site’s id, unique within its owner.'),
    owner: t.id({
      nullable: true,
      description: 'The id of the user that owns the site; null for the holder of a grant.',
      resolve: ({ userId, seen }) => (seen === 'whole' ? userId : null),
    }),
    mode: text(
      'The site’s mode. A registered site is always `cooperative`; in any other mode nothing is invoked or published.',
    ),
    title: nullable.text('The site’s title, for people; null if the owner gave none.'),
    eventNames: texts(
      'The names of the events that may be published; empty means any name. For the holder of a grant: the names that it may receive; if empty, see the grant.',
    ),
    actions: texts('The actions that may be invoked. For the holder of a grant: those that it may invoke.'),
    capabilityProfile: typed(CapabilityProfileType, 'What the site’s viewers may do besides reading events.'),
    clientId: t.id({
      nullable: true,
      description: 'The id of the client that hosts the site; null for the holder of a grant.',
      resolve: ({ clientId, seen }) => (seen === 'whole' ? clientId : null),
    }),
    hostConnected: flag(
      'Derived: whether the hosting client is connected now over a link whose token has the scope `host`.',
    ),
    completeness: t.field({
      type: CompletenessType,
      description: 'Whether `hostConnected` may be out of date, and why: the node that reports the host may be silent.',
      resolve: (site, _, { core }) => core.sites.completeness(site),
    }),
    host: t.field({
      type: ConnectionSnapshot,
      nullable: true,
      description: 'The connection of the hosting client; null if there is none, and for the holder of a grant.',
      resolve: (site, _, context) => (site.seen === 'whole' ? loadSized(context, site) : null),
    }),
    registeredAt: t.field({
      type: 'DateTime',
      nullable: true,
      description:
        'When the site was registered; replacing its definition does not change this time. Null for the holder of a grant.',
      resolve: ({ registeredAt, seen }) => (seen === 'whole' ? registeredAt : null),
    }),
  })),
});

const SiteConnection = connectionOf('Site', SiteType, { rows: 'sites', size: SITE_SIZE });

builder.queryFields((t) => ({
  sites: t.field({
    type: SiteConnection,
    description: 'Sites in order of owner and site id. A user sees its own.',
    complexity: pageCost,
    args: {
      userId: t.arg.id(ROWS_OF_USER),
      ...pageArguments,
    },
    resolve: (_, { userId, ...page }, { core, requester }) => core.sites.list(requester, userId ?? null, pageOf(page)),
  }),
  site: t.field({
    type: SiteType,
    nullable: true,
    description: 'One site; null if there is none or it belongs to another user.',
    args: {
      owner: t.arg.id({ description: 'The id of the owner. Omitted: the requester. Required for administrators.' }),
      siteId: t.arg.id({ required: true, description: 'The site’s id.' }),
    },
    resolve: (_, { owner, siteId }, { core, requester }) => core.sites.get(requester, owner ?? null, siteId),
  }),
}));

const sitesOfUser = loadPagesBy(
  (userId: string) => userId,
  ({ core, requester }, ids, first) => core.sites.ofUsers(requester, ids, first),
  ({ core, requester }, id, page) => core.sites.list(requester, id, page),
);

builder.objectField(User, 'sites', (t) =>
  t.field({
    type: SiteConnection,
    description: 'The user’s sites, in order of site id.',
    ...PAGED,
    resolve: ({ id }, page, context) => sitesOfUser.page(context, id, pageOf(page)),
  }),
);

const CapabilityProfileInput = builder.inputType('CapabilityProfileInput', {
  description: 'What a site lets its viewers do besides reading events.',
  fields: (t) => ({
    actionInvocation: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether viewers may invoke the site’s allowed actions.',
    }),
    sharing: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether sessions of the site may be shared.',
    }),
  }),
});

const SiteModeEnum = wireEnum<'cooperative'>('SiteMode', 'The modes in which a site can be registered.', {
  cooperative: 'Viewers get its events and may invoke its allowed actions.',
});

const RegisterSiteInput = builder.inputType('RegisterSiteInput', {
  description:
    'The whole definition of a site. A member that is left out becomes empty; it does not keep its previous value.',
  fields: (t) => ({
    siteId: t.id({ required: true, description: 'The site’s id, unique within its owner; neither `.` nor `..`.' }),
    clientId: t.id({ required: true, description: 'The id of the client that hosts the site.' }),
    mode: t.field({ type: SiteModeEnum, description: 'The mode of the site. Omitted: cooperative.' }),
    title: t.string({ description: 'A title for people, at most 256 characters. Omitted: none.' }),
    eventNames: t.stringList({
      description: 'The names of the events that may be published; empty or omitted: any name.',
    }),
    actions: t.stringList({ description: 'The actions that may be invoked; empty or omitted: none.' }),
    capabilityProfile: t.field({
      type: CapabilityProfileInput,
      description: 'What the site’s viewers may do besides reading events. Omitted: nothing.',
    }),
  }),
});

const RegisterSiteResult = orRefusal('RegisterSiteResult', SiteType, 'The site after the change, or a refusal.');

const RemovedSite = builder
  .objectRef<{ readonly siteId: string; readonly closedSessions: number }>('RemovedSite')
  .implement({
    description: 'A removed site.',
    fields: fieldsOf(() => ({
      siteId: id('The site’s id.'),
      closedSessions: int('How many sessions of the site were closed.'),
    })),
  });

const RemoveSiteResult = orRefusal('RemoveSiteResult', RemovedSite, 'The removed site, or a refusal.');

builder.mutationFields((t) => ({
  registerSite: t.field({
    type: RegisterSiteResult,
    description: `Creates a site of the requester, or replaces the definition of one. Needs the scope \`host\`; a user may have at most ${SITES_PER_USER} sites.`,
    args: { input: t.arg({ type: RegisterSiteInput, required: true, description: 'The definition.' }) },
    resolve: (_, { input }, { core, requester }) => answered(() => core.sites.register(requester, input)),
  }),
  removeSite: t.field({
    type: RemoveSiteResult,
    description: 'Removes a site of the requester and closes its sessions. Needs the scope `host`.',
    args: { siteId: t.arg.id({ required: true, description: 'The site’s id.' }) },
    resolve: (_, { siteId }, { core, requester }) => answered(() => core.sites.remove(requester, siteId)),
  }),
}));

// The types of a site’s sessions and grants. A token is shown once, when it is made.

export const SessionStateEnum = wireEnum<SessionState>(
  'SessionState',
  'Whether a session can be used; derived when it is read.',
  {
    active: 'The host is connected: events flow and actions can be invoked.',
    suspended: 'The host is not connected: nothing can be invoked. Viewers stay subscribed.',
    closed: 'The session was closed, or its site was removed.',
    expired: 'The session’s time ran out.',
  },
);

/** A grant, and the session that it belongs to. */
type GrantView = Grant & { readonly sessionId: string };

export function grantOf({ sessionId }: Pick<SiteSession, 'sessionId'>, grant: Grant): GrantView {
  return { ...grant, sessionId };
}

export const GrantType = builder.objectRef<GrantView>('SiteGrant').implement({
  description:
    'What the holder of one token may do in a session: never more than the parent grant and the site’s definition allow.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('SiteGrant', row) }),
    grantId: id('The grant’s id, unique within its session.'),
    events: nullable.texts(
      'The names of the events that the holder may receive; null means all that the site publishes.',
    ),
    actions: nullable.texts(
      'The actions that the holder may invoke; null, only for the owner, means all that the site allows.',
    ),
    share: flag('Whether the holder may share the session with others.'),
    expiresAt: time('When the grant expires.'),
    parentId: nullable.id('The id of the grant that it was shared from; null if the owner gave it.'),
    revokedAt: nullable.time('When the grant was revoked; null if it was not.'),
  })),
});

export const SiteSessionType = builder.objectRef<SessionView>('SiteSession').implement({
  description: 'A limited time in which viewers may use a site.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: ({ session }) => nodeIdOf('SiteSession', session) }),
    sessionId: t.id({ description: 'The session’s id.', resolve: ({ session }) => session.sessionId }),
    site: nullable.typed(SiteType, 'The site, as the requester may see it; null if it was removed.'),
    state: typed(SessionStateEnum, 'Whether the session can be used.'),
    completeness: t.field({
      type: CompletenessType,
      description: 'Whether `state` may be out of date, and why: the node that reports the host may be silent.',
      resolve: ({ site }, _, { core }) => core.sites.completeness(site),
    }),
    ...fieldsOfPart(t, 'session', {
      openedAt: time('When the session was opened.'),
      expiresAt: time('When the session expires.'),
    }),
    grant: t.field({
      type: GrantType,
      nullable: true,
      description: 'What the requester may do; null for an administrator, who may only read.',
      resolve: ({ session, grant }) => grant && grantOf(session, grant),
    }),
    subscribers: nullable.int(
      'How many subscriptions are live on the node that answers; null for the holder of a grant.',
    ),
    grants: t.field({
      type: [GrantType],
      nullable: true,
      resolve: ({ session, grants }) => grants?.map((grant) => grantOf(session, grant)),
      description: `All grants of the session in the order in which they were given, at most ${GRANTS_PER_SESSION} of them live; null for the holder of a grant.`,
    }),
  })),
});

// Sessions of sites: open, share, revoke, close, and tickets for event streams.

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

const CloseSiteSessionResult = orRefusal(
  'CloseSiteSessionResult',
  SiteSessionType,
  'The closed session, or a refusal.',
);

const RevokedGrants = builder.objectRef<readonly string[]>('RevokedGrants').implement({
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

const RevokeGrantResult = orRefusal('RevokeGrantResult', RevokedGrants, 'The revoked grants, or a refusal.');

const CreateSiteTicketResult = orRefusal('CreateSiteTicketResult', SiteTicket, 'The ticket, or a refusal.');

const sessionId = { required: true, description: 'The session’s id.' } as const;

builder.mutationFields((t) => ({
  openSiteSession: t.field({
    type: OpenSiteSessionResult,
    description: 'Opens a session of a site of the requester. Needs the scope `host`.',
    args: { input: t.arg({ type: OpenSiteSessionInput, required: true, description: 'The session to open.' }) },
    resolve: (_, { input: { siteId, ...request } }, { core, requester }) =>
      answered(() => core.sites.open(requester, siteId, request)),
  }),
  closeSiteSession: t.field({
    type: CloseSiteSessionResult,
    description: 'Closes a session; its event streams end within a second. Only for its owner, with the scope `host`.',
    args: { sessionId: t.arg.id(sessionId) },
    resolve: (_, { sessionId: id }, { core, requester }) => answered(() => core.sites.close(requester, id)),
  }),
  shareSiteSession: t.field({
    type: ShareSiteSessionResult,
    description:
      'Gives another grant of a session. Only for its owner, and for the holder of a grant that may be shared.',
    args: { input: t.arg({ type: ShareSiteSessionInput, required: true, description: 'The grant to give.' }) },
    resolve: (_, { input: { sessionId: id, ...request } }, { core, requester }) =>
      answered(
        () => core.sites.share(requester, id, request),
        (given) => ('kind' in given ? given : { ...given, sessionId: id }),
      ),
  }),
  revokeGrant: t.field({
    type: RevokeGrantResult,
    description:
      'Revokes a grant and all grants shared from it; their event streams end within a second. Only for the session’s owner, and for the holder of the grant or of one that it was shared from.',
    args: { sessionId: t.arg.id(sessionId), grantId: t.arg.id({ required: true, description: 'The grant’s id.' }) },
    resolve: (_, { sessionId: id, grantId }, { core, requester }) =>
      answered(() => core.sites.revoke(requester, id, grantId)),
  }),
  createSiteTicket: t.field({
    type: CreateSiteTicketResult,
    description: `Creates a ticket for one event stream. It must be redeemed within ${TICKET_MS / 1000} seconds; the stream may then reconnect with it while the session and the grant last. Only for the session’s owner and the holders of its grants.`,
    args: { sessionId: t.arg.id(sessionId) },
    resolve: (_, { sessionId: id }, { core, requester }) => answered(() => core.sites.ticket(requester, id)),
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
    resolve: (_, { input: { sessionId, ...request } }, { core, requester, signal, notes, trace }) => {
      const params = textOfJson(request.params);
      const traced = { trace, onSpan: spanNoter(notes) };
      return answered(
        () => core.sites.invoke(requester, sessionId, { ...request, params, signal, ...traced }),
        (invocation) => view(noteCommand(notes, invocation), false),
      );
    },
  }),
);
