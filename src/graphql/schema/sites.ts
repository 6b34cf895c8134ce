/** Defines the schema of cooperative sites: their types, their listings, and their registration. */
import { SITES_PER_USER } from '../../core/limits.ts';
import type { SiteView } from '../../core/sites/site-requests.ts';
import type { CapabilityProfile } from '../../core/sites/site.ts';
import type { RowSize } from './answer-budget.ts';
import { builder, wireEnum } from './builder.ts';
import { ConnectionSnapshot, loadSized } from './connections.ts';
import { fieldsOf, flag, id, int, nullable, text, texts, typed } from './fields.ts';
import { loadPagesBy } from './loaders.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { CompletenessType, PAGED, ROWS_OF_USER, connectionOf, pageArguments, pageCost, pageOf } from './page.ts';
import { answered, orRefusal } from './refusal.ts';
import { User } from './users.ts';

/** The size of a site in an answer. A site may list up to 256 names of each kind. */
export const SITE_SIZE: RowSize<SiteView> = {
  fields: ['eventNames', 'actions'],
  bytes: ({ eventNames, actions }, asks) =>
    (asks('eventNames') ? namesBytes(eventNames) : 0) + (asks('actions') ? namesBytes(actions) : 0),
};

/** Returns the approximate size of the names as a JSON list: characters, quotes and commas. */
export function namesBytes(names: readonly string[]): number {
  return names.reduce((sum, name) => sum + name.length + 3, 0);
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
