/** Cooperative sites: the type, the listings, and registration by their hosts. */
import { notFound } from '../../core/errors.ts';
import { GRANTS_PER_SESSION, SITES_PER_USER } from '../../core/limits.ts';
import type { SessionView, SiteView } from '../../core/sites/site-policy.ts';
import type { CapabilityProfile, Grant, SessionState, SiteSession } from '../../core/sites/site.ts';
import { builder, wireEnum } from './builder.ts';
import { fieldsOf, fieldsOfPart, flag, id, int, nullable, text, texts, time, typed } from './builder-fields.ts';
import { ConnectionSnapshot, loadSized } from './connections.ts';
import { loadPagesBy } from './context.ts';
import { NODE_ID, NodeInterface, nodeIdOf } from './node-interface.ts';
import type { RowSize } from './page-budget.ts';
import { PAGED, CompletenessType, ROWS_OF_USER, connectionOf, pageArguments, pageCost, pageOf } from './page.ts';
import { orRefusal, refusalOf } from './refusal.ts';
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

const RegisterSiteInput = builder.inputType('RegisterSiteInput', {
  description:
    'The whole definition of a site. A member that is left out becomes empty; it does not keep its previous value.',
  fields: (t) => ({
    siteId: t.id({ required: true, description: 'The site’s id, unique within its owner; neither `.` nor `..`.' }),
    clientId: t.id({ required: true, description: 'The id of the client that hosts the site.' }),
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

const RemoveSiteResult = builder
  .objectRef<{ readonly siteId: string; readonly closedSessions: number }>('RemoveSiteResult')
  .implement({
    description: 'A removed site.',
    fields: fieldsOf(() => ({
      siteId: id('The site’s id.'),
      closedSessions: int('How many sessions of the site were closed.'),
    })),
  });

builder.mutationFields((t) => ({
  registerSite: t.field({
    type: RegisterSiteResult,
    description: `Creates a site of the requester, or replaces the definition of one. Needs the scope \`host\`; a user may have at most ${SITES_PER_USER} sites.`,
    args: { input: t.arg({ type: RegisterSiteInput, required: true, description: 'The definition.' }) },
    resolve: (_, { input }, { core, requester }) => core.sites.register(requester, input).catch(refusalOf),
  }),
  removeSite: t.field({
    type: RemoveSiteResult,
    description: 'Removes a site of the requester and closes its sessions. Needs the scope `host`.',
    args: { siteId: t.arg.id({ required: true, description: 'The site’s id.' }) },
    resolve: async (_, { siteId }, { core, requester }) => (await core.sites.remove(requester, siteId)) ?? notFound(),
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
