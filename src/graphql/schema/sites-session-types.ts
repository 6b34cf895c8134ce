/** The types of a site’s sessions and grants. A token is shown once, when it is made. */
import { GRANTS_PER_SESSION } from '../../core/limits.ts';
import type { SessionView } from '../../core/sites/api.ts';
import type { Grant, SessionState, SiteSession } from '../../core/sites/session.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { CompletenessType } from './page.ts';
import { SiteType } from './sites.ts';

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
  fields: (t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('SiteGrant', row) }),
    grantId: t.exposeID('grantId', { description: 'The grant’s id, unique within its session.' }),
    events: t.exposeStringList('events', {
      nullable: true,
      description: 'The names of the events that the holder may receive; null means all that the site publishes.',
    }),
    actions: t.exposeStringList('actions', {
      nullable: true,
      description: 'The actions that the holder may invoke; null, only for the owner, means all that the site allows.',
    }),
    share: t.exposeBoolean('share', { description: 'Whether the holder may share the session with others.' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'When the grant expires.' }),
    parentId: t.exposeID('parentId', {
      nullable: true,
      description: 'The id of the grant that it was shared from; null if the owner gave it.',
    }),
    revokedAt: t.expose('revokedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the grant was revoked; null if it was not.',
    }),
  }),
});

export const SiteSessionType = builder.objectRef<SessionView>('SiteSession').implement({
  description: 'A limited time in which viewers may use a site.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.id({ ...NODE_ID, resolve: ({ session }) => nodeIdOf('SiteSession', session) }),
    sessionId: t.id({ description: 'The session’s id.', resolve: ({ session }) => session.sessionId }),
    site: t.expose('site', {
      type: SiteType,
      nullable: true,
      description: 'The site, as the requester may see it; null if it was removed.',
    }),
    state: t.expose('state', { type: SessionStateEnum, description: 'Whether the session can be used.' }),
    completeness: t.field({
      type: CompletenessType,
      description: 'Whether `state` may be out of date, and why: the node that reports the host may be silent.',
      resolve: ({ site }, _, { core }) => core.sites.completeness(site),
    }),
    openedAt: t.field({
      type: 'DateTime',
      description: 'When the session was opened.',
      resolve: ({ session }) => session.openedAt,
    }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'When the session expires.',
      resolve: ({ session }) => session.expiresAt,
    }),
    grant: t.field({
      type: GrantType,
      nullable: true,
      description: 'What the requester may do; null for an administrator, who may only read.',
      resolve: ({ session, grant }) => grant && grantOf(session, grant),
    }),
    subscribers: t.exposeInt('subscribers', {
      nullable: true,
      description: 'How many subscriptions are live on the node that answers; null for the holder of a grant.',
    }),
    grants: t.field({
      type: [GrantType],
      nullable: true,
      resolve: ({ session, grants }) => grants?.map((grant) => grantOf(session, grant)),
      description: `All grants of the session in the order in which they were given, at most ${GRANTS_PER_SESSION} of them live; null for the holder of a grant.`,
    }),
  }),
});
