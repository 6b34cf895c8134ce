/**
 * Defines the schema of site sessions and their grants: opening, sharing, revoking and closing, and tickets for event
 * streams.
 */
import { GRANTS_PER_SESSION, SESSION_TTL_SECONDS, TICKET_MS } from '../../core/limits.ts';
import type { NewToken, OpenedSession, SessionView } from '../../core/sites/site-requests.ts';
import type { Grant, SessionState, SiteSession } from '../../core/sites/site-session.ts';
import type { RowSize } from './answer-budget.ts';
import { builder, wireEnum } from './builder.ts';
import { fieldsOf, fieldsOfPart, flag, id, nullable, text, time, typed } from './fields.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { CompletenessType, PAGED, connectionOf, pageOf } from './page.ts';
import { answered, orRefusal } from './refusal.ts';
import { SITE_SIZE, SiteType, namesBytes } from './sites.ts';

/** The size of a session in an answer: the size of its grants and its site. */
export const SESSION_SIZE: RowSize<SessionView> = {
  fields: ['grants', 'site'],
  bytes: ({ grants, site }, asks) =>
    (asks('grants') ? (grants ?? []).reduce((sum, grant) => sum + grantBytes(grant), 0) : 0) +
    (asks('site') && site ? SITE_SIZE.bytes(site, asks) : 0),
};

/** The approximate bytes of a grant in an answer, without its names. */
const GRANT_BYTES = 256;

function grantBytes({ events, actions }: Grant): number {
  return GRANT_BYTES + namesBytes(events ?? []) + namesBytes(actions ?? []);
}

// The types of sessions and grants. A token is shown only once, when it is created.

const SessionStateEnum = wireEnum<SessionState>(
  'SessionState',
  'Whether a session can be used; derived when it is read.',
  {
    active: 'The host is connected: events flow and actions can be invoked.',
    suspended: 'The host is not connected: nothing can be invoked. Viewers stay subscribed.',
    closed: 'The session was closed, or its site was removed.',
    expired: 'The session’s time ran out.',
  },
);

/** A grant together with the id of its session. */
type GrantView = Grant & { readonly sessionId: string };

export function grantOf({ sessionId }: Pick<SiteSession, 'sessionId'>, grant: Grant): GrantView {
  return { ...grant, sessionId };
}

const GrantType = builder.objectRef<GrantView>('SiteGrant').implement({
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

const SiteSessionType = builder.objectRef<SessionView>('SiteSession').implement({
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

// The fields that list, open, share and close sessions, revoke grants, and issue tickets for event streams.

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

export const sessionId = { required: true, description: 'The session’s id.' } as const;

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
