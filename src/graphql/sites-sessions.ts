import { notFound } from '../core/errors.ts';
import { GRANTS_PER_SESSION, SESSION_TTL_SECONDS, TICKET_MS } from '../core/limits.ts';
import type { NewToken, OpenedSession, SessionView } from '../core/sites/room.ts';
import type { Grant, SessionState } from '../core/sites/session.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';
import { connectionOf, pageArguments, pageCost, pageOf } from './page.ts';
import { Refusal, refusalOf } from './refusal.ts';
import { SESSION_SIZE } from './sites-size.ts';
import { SiteType } from './sites.ts';

const SessionStateEnum = wireEnum<SessionState>('SessionState', 'Whether a session can be used, derived on reading.', {
  active: 'Its host is connected: events flow and actions can be invoked.',
  suspended: 'Its host is away: nothing can be invoked.',
  closed: 'It was closed, or its site was removed.',
  expired: 'Its time ran out.',
});

const GrantType = builder.objectRef<Grant>('Grant').implement({
  description:
    'What the holder of one token may do in a session: never more than its parent and the site’s definition.',
  fields: (t) => ({
    id: t.id({ description: 'The grant.', resolve: ({ grantId }) => grantId }),
    events: t.exposeStringList('events', {
      nullable: true,
      description: 'The events that it may hear; null: all that the site publishes.',
    }),
    actions: t.exposeStringList('actions', {
      nullable: true,
      description: 'The actions that it may invoke; null for the owner: all that the site allows.',
    }),
    share: t.exposeBoolean('share', { description: 'Whether it may be shared on.' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'When it ends by itself.' }),
    parentId: t.exposeID('parentId', {
      nullable: true,
      description: 'The grant that it was shared from; null when the owner gave it.',
    }),
    revokedAt: t.expose('revokedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was revoked; null if it was not.',
    }),
  }),
});

const SiteSessionType = builder.objectRef<SessionView>('SiteSession').implement({
  description: 'Viewers of a site, for a time.',
  fields: (t) => ({
    id: t.id({ description: 'The session.', resolve: ({ session }) => session.sessionId }),
    site: t.expose('site', {
      type: SiteType,
      nullable: true,
      description: 'The site, as the asker may see it; null once it was removed.',
    }),
    state: t.expose('state', { type: SessionStateEnum, description: 'Whether it can be used.' }),
    openedAt: t.field({
      type: 'DateTime',
      description: 'When it was opened.',
      resolve: ({ session }) => session.openedAt,
    }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'When it ends by itself.',
      resolve: ({ session }) => session.expiresAt,
    }),
    grant: t.expose('grant', {
      type: GrantType,
      nullable: true,
      description: 'What the asker itself may do; null for an administrator, who only looks.',
    }),
    subscribers: t.exposeInt('subscribers', {
      nullable: true,
      description: 'Live subscriptions on the node that answers; null for the holder of a grant.',
    }),
    grants: t.expose('grants', {
      type: [GrantType],
      nullable: true,
      description: `All its grants in the order given, at most ${GRANTS_PER_SESSION} of them live; null for the holder of one.`,
    }),
  }),
});

const SiteSessionConnection = connectionOf('SiteSession', SiteSessionType, {
  rows: 'sessions of a site',
  size: SESSION_SIZE,
});

builder.objectField(SiteType, 'sessions', (t) =>
  t.field({
    type: SiteSessionConnection,
    nullable: true,
    description: 'Its sessions, oldest first, those lately over included; null for the holder of a grant.',
    complexity: pageCost,
    args: { ...pageArguments },
    resolve: (site, page, { core, who }) =>
      site.seen === 'whole' ? core.sites.sessions(who, site, pageOf(page)) : null,
  }),
);

builder.queryField('siteSession', (t) =>
  t.field({
    type: SiteSessionType,
    nullable: true,
    description: 'One session, for its owner, the holders of its grants and administrators; null for anybody else.',
    args: { id: t.arg.id({ required: true, description: 'The session.' }) },
    resolve: (_, { id }, { core, who }) => core.sites.session(who, id),
  }),
);

const ttlSeconds = {
  description: `How long it lasts, ${SESSION_TTL_SECONDS.min} to ${SESSION_TTL_SECONDS.max} seconds.`,
  extensions: { minimum: SESSION_TTL_SECONDS.min, maximum: SESSION_TTL_SECONDS.max },
};

const OpenSiteSessionInput = builder.inputType('OpenSiteSessionInput', {
  description: 'A session, and what its first grant allows.',
  fields: (t) => ({
    siteId: t.id({ required: true, description: 'One of the asker’s own sites.' }),
    ttlSeconds: t.int({ ...ttlSeconds, description: `${ttlSeconds.description} Omitted, an hour.` }),
    events: t.stringList({ description: 'The events of the first grant; omitted, all that the site publishes.' }),
    actions: t.stringList({ description: 'The actions of the first grant; omitted, all that the site allows now.' }),
  }),
});

const ShareSiteSessionInput = builder.inputType('ShareSiteSessionInput', {
  description: 'A further grant: never more than the giver’s own.',
  fields: (t) => ({
    sessionId: t.id({ required: true, description: 'The session.' }),
    events: t.stringList({ description: 'The events; omitted, the giver’s.' }),
    actions: t.stringList({ description: 'The actions; omitted, the giver’s.' }),
    share: t.boolean({ required: true, defaultValue: false, description: 'Whether it may be shared on.' }),
    ttlSeconds: t.int({ ...ttlSeconds, description: `${ttlSeconds.description} Never longer than the giver’s.` }),
  }),
});

const OpenedSiteSession = builder.objectRef<OpenedSession>('OpenedSiteSession').implement({
  description: 'A new session with its first grant, whose token is shown this once.',
  fields: (t) => ({
    sessionId: t.id({ description: 'The session.', resolve: ({ view }) => view.session.sessionId }),
    grantId: t.id({ description: 'Its first grant.', resolve: ({ grant }) => grant.grantId }),
    token: t.exposeString('token', {
      description: 'The bearer token of the first grant. Only a digest of it is kept.',
    }),
    state: t.field({
      type: SessionStateEnum,
      description: 'Whether it can be used.',
      resolve: ({ view }) => view.state,
    }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'When both end by themselves.',
      resolve: ({ grant }) => grant.expiresAt,
    }),
    session: t.field({ type: SiteSessionType, description: 'The session.', resolve: ({ view }) => view }),
  }),
});

const SharedGrant = builder.objectRef<NewToken>('SharedGrant').implement({
  description: 'A new grant, whose token is shown this once.',
  fields: (t) => ({
    grantId: t.id({ description: 'The grant.', resolve: ({ grant }) => grant.grantId }),
    token: t.exposeString('token', { description: 'Its bearer token. Only a digest of it is kept.' }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'When it ends by itself.',
      resolve: ({ grant }) => grant.expiresAt,
    }),
    grant: t.expose('grant', { type: GrantType, description: 'What it allows.' }),
  }),
});

const OpenSiteSessionResult = builder.unionType('OpenSiteSessionResult', {
  description: 'The new session, or a refusal.',
  types: [OpenedSiteSession, Refusal],
  resolveType: (answer) => ('kind' in answer ? 'Refusal' : 'OpenedSiteSession'),
});

const ShareSiteSessionResult = builder.unionType('ShareSiteSessionResult', {
  description: 'The new grant, or a refusal.',
  types: [SharedGrant, Refusal],
  resolveType: (answer) => ('kind' in answer ? 'Refusal' : 'SharedGrant'),
});

const RevokeGrantResult = builder.objectRef<readonly string[]>('RevokeGrantResult').implement({
  description: 'What was revoked.',
  fields: (t) => ({
    revoked: t.idList({
      description: 'The grant and all that were shared from it, where they were not revoked before.',
      resolve: (ids) => [...ids],
    }),
  }),
});

const SiteTicket = builder.objectRef<{ readonly ticket: string; readonly expiresAt: number }>('SiteTicket').implement({
  description: 'What opens one event stream in place of a token, for an `EventSource`, which can send no header.',
  fields: (t) => ({
    ticket: t.exposeString('ticket', {
      description: 'Goes into the query as `ticket`. Also good for the reconnects of the EventSource that redeemed it.',
    }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'When it is good no more.' }),
  }),
});

const sessionId = { required: true, description: 'The session.' } as const;

builder.mutationFields((t) => ({
  openSiteSession: t.field({
    type: OpenSiteSessionResult,
    description: 'Opens a session of one of the asker’s own sites. Needs the scope `host`.',
    args: { input: t.arg({ type: OpenSiteSessionInput, required: true, description: 'The session.' }) },
    resolve: async (_, { input: { siteId, ...request } }, { core, who }) =>
      (await core.sites.open(who, siteId, request).catch(refusalOf)) ?? notFound(),
  }),
  closeSiteSession: t.field({
    type: SiteSessionType,
    description: 'Closes a session; its streams end within a second. For its owner, with the scope `host`.',
    args: { id: t.arg.id(sessionId) },
    resolve: async (_, { id }, { core, who }) => (await core.sites.close(who, id)) ?? notFound(),
  }),
  shareSiteSession: t.field({
    type: ShareSiteSessionResult,
    description: 'Gives a further grant of a session. For its owner, and for the holder of a grant that may be shared.',
    args: { input: t.arg({ type: ShareSiteSessionInput, required: true, description: 'The grant.' }) },
    resolve: async (_, { input: { sessionId: id, ...request } }, { core, who }) =>
      (await core.sites.share(who, id, request).catch(refusalOf)) ?? notFound(),
  }),
  revokeGrant: t.field({
    type: RevokeGrantResult,
    description:
      'Revokes a grant and all that were shared from it; their streams end within a second. For the session’s owner, and for the holder of the grant or of one that it came from.',
    args: { sessionId: t.arg.id(sessionId), grantId: t.arg.id({ required: true, description: 'The grant.' }) },
    resolve: async (_, { sessionId: id, grantId }, { core, who }) =>
      (await core.sites.revoke(who, id, grantId)) ?? notFound(),
  }),
  createSiteTicket: t.field({
    type: SiteTicket,
    description: `A ticket for one event stream, to be redeemed within ${TICKET_MS / 1000} seconds; the stream may then reconnect with it while session and grant last. For the session’s owner and the holders of its grants.`,
    args: { sessionId: t.arg.id(sessionId) },
    resolve: async (_, { sessionId: id }, { core, who }) => (await core.sites.ticket(who, id)) ?? notFound(),
  }),
}));
