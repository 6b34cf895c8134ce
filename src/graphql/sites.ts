import { notFound } from '../core/errors.ts';
import { SITES_PER_USER } from '../core/limits.ts';
import { andThen } from '../core/maybe.ts';
import type { SiteView } from '../core/sites/room.ts';
import type { CapabilityProfile } from '../core/sites/site.ts';
import { builder } from './builder.ts';
import { ConnectionSnapshot } from './connections.ts';
import { CONNECTION_SIZE } from './connections-size.ts';
import { connectionOf, pageArguments, pageCost, pageOf } from './page.ts';
import { Refusal, refusalOf } from './refusal.ts';
import { SITE_SIZE } from './sites-size.ts';
import { User } from './users.ts';

const CapabilityProfileType = builder.objectRef<CapabilityProfile>('CapabilityProfile').implement({
  description: 'What a site lets its viewers do beside listening.',
  fields: (t) => ({
    actionInvocation: t.exposeBoolean('actionInvocation', {
      description: 'Whether any of the site’s actions may be invoked.',
    }),
    sharing: t.exposeBoolean('sharing', { description: 'Whether a session may be shared.' }),
  }),
});

export const SiteType = builder.objectRef<SiteView>('Site').implement({
  description:
    'A cooperative site as its owner defined it. The holder of a grant sees its title and what of it the grant allows; the rest is null.',
  fields: (t) => ({
    id: t.id({ description: 'The owner’s own id of it.', resolve: ({ siteId }) => siteId }),
    owner: t.id({
      nullable: true,
      description: 'The user whose site it is; null for the holder of a grant.',
      resolve: ({ userId, seen }) => (seen === 'whole' ? userId : null),
    }),
    mode: t.exposeString('mode', {
      description:
        'Always `cooperative` of what was registered here; in any other mode nothing is invoked or published.',
    }),
    title: t.exposeString('title', { nullable: true, description: 'What its owner calls it.' }),
    eventNames: t.exposeStringList('eventNames', {
      description:
        'The names that may be published; empty: any. For the holder of a grant, those that it may hear (empty: see the grant).',
    }),
    actions: t.exposeStringList('actions', {
      description: 'The actions that may be invoked. For the holder of a grant, those that it may invoke.',
    }),
    capabilityProfile: t.expose('capabilityProfile', {
      type: CapabilityProfileType,
      description: 'What its viewers may do beside listening.',
    }),
    clientId: t.id({
      nullable: true,
      description: 'The client that hosts it; null for the holder of a grant.',
      resolve: ({ clientId, seen }) => (seen === 'whole' ? clientId : null),
    }),
    hostConnected: t.exposeBoolean('hostConnected', {
      description: 'Derived: whether its client is connected now by a link whose token held the scope `host`.',
    }),
    host: t.field({
      type: ConnectionSnapshot,
      nullable: true,
      description: 'The connection of its client, if there is one; null for the holder of a grant.',
      resolve: ({ userId, clientId, seen }, _, { loaders, budget }) =>
        seen === 'whole'
          ? andThen(loaders.connection({ userId, clientId }), (host) => host && budget.row(host, CONNECTION_SIZE))
          : null,
    }),
    registeredAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it was first registered, since it was last removed; null for the holder of a grant.',
      resolve: ({ registeredAt, seen }) => (seen === 'whole' ? registeredAt : null),
    }),
  }),
});

export const SiteConnection = connectionOf('Site', SiteType, { rows: 'sites', size: SITE_SIZE });

builder.queryFields((t) => ({
  sites: t.field({
    type: SiteConnection,
    description: 'Sites in order of owner and id. A user sees its own.',
    complexity: pageCost,
    args: {
      userId: t.arg.id({ description: 'Only this user’s; omitted, a user’s own and an administrator’s all.' }),
      ...pageArguments,
    },
    resolve: (_, { userId, ...page }, { core, who }) => core.sites.list(who, userId ?? null, pageOf(page)),
  }),
  site: t.field({
    type: SiteType,
    nullable: true,
    description: 'One site; null when there is none, or it is another user’s.',
    args: {
      owner: t.arg.id({ description: 'Whose; omitted, the asker’s own. Required of an administrator.' }),
      siteId: t.arg.id({ required: true, description: 'The owner’s own id of it.' }),
    },
    resolve: (_, { owner, siteId }, { core, who }) => core.sites.get(who, owner ?? null, siteId),
  }),
}));

builder.objectField(User, 'sites', (t) =>
  t.field({
    type: SiteConnection,
    description: 'The user’s sites in order of id.',
    complexity: pageCost,
    args: { ...pageArguments },
    resolve: ({ id }, asked, { core, who, loaders }) => {
      const page = pageOf(asked);
      return page.after ? core.sites.list(who, id, page) : loaders.sitesOfUser(id, page.first);
    },
  }),
);

const CapabilityProfileInput = builder.inputType('CapabilityProfileInput', {
  description: 'What a site lets its viewers do beside listening.',
  fields: (t) => ({
    actionInvocation: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether any of the site’s actions may be invoked.',
    }),
    sharing: t.boolean({ required: true, defaultValue: false, description: 'Whether a session may be shared.' }),
  }),
});

const RegisterSiteInput = builder.inputType('RegisterSiteInput', {
  description: 'A whole definition: what is left out is not as it was before, but empty.',
  fields: (t) => ({
    siteId: t.id({ required: true, description: 'The owner’s own id of it; neither `.` nor `..`.' }),
    clientId: t.id({ required: true, description: 'The client that hosts it.' }),
    title: t.string({ description: 'What its owner calls it: at most 256 characters.' }),
    eventNames: t.stringList({ description: 'The names that may be published; empty: any.' }),
    actions: t.stringList({ description: 'The actions that may be invoked; empty: none.' }),
    capabilityProfile: t.field({
      type: CapabilityProfileInput,
      description: 'What its viewers may do beside listening; omitted, nothing.',
    }),
  }),
});

const RegisterSiteResult = builder.unionType('RegisterSiteResult', {
  description: 'The site as it now stands, or a refusal.',
  types: [SiteType, Refusal],
  resolveType: (answer) => ('kind' in answer ? 'Refusal' : 'Site'),
});

const RemoveSiteResult = builder
  .objectRef<{ readonly siteId: string; readonly closedSessions: number }>('RemoveSiteResult')
  .implement({
    description: 'A site that is no more.',
    fields: (t) => ({
      siteId: t.exposeID('siteId', { description: 'The site.' }),
      closedSessions: t.exposeInt('closedSessions', { description: 'Sessions that were closed with it.' }),
    }),
  });

builder.mutationFields((t) => ({
  registerSite: t.field({
    type: RegisterSiteResult,
    description: `Makes one of the asker’s own sites, or replaces its definition. Needs the scope \`host\`; a user has at most ${SITES_PER_USER}.`,
    args: { input: t.arg({ type: RegisterSiteInput, required: true, description: 'The definition.' }) },
    resolve: (_, { input }, { core, who }) => core.sites.register(who, input).catch(refusalOf),
  }),
  removeSite: t.field({
    type: RemoveSiteResult,
    description: 'Removes one of the asker’s own sites and closes its sessions. Needs the scope `host`.',
    args: { siteId: t.arg.id({ required: true, description: 'The site.' }) },
    resolve: async (_, { siteId }, { core, who }) => (await core.sites.remove(who, siteId)) ?? notFound(),
  }),
}));
