/** The GraphQL type that tells the requester who it is and what it may do. */
import { requireScope, type CallingPrincipal, type Scope } from '../../core/auth/principal.ts';
import type { Core } from '../../core/core.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';

const ViewerKindEnum = wireEnum<CallingPrincipal['kind']>('ViewerKind', 'The kind of requester.', {
  admin: 'An administrator.',
  user: 'A user.',
});

const ScopeEnum = wireEnum<Scope>('Scope', 'What a user’s token allows.', {
  connect: 'Connect clients of the user.',
  invoke: 'Read the user’s own data and invoke actions of its clients.',
  host: 'Host sites of the user and ingest events.',
});

export const ModeEnum = wireEnum<Core['mode']>('Mode', 'How this deployment keeps its state.', {
  direct: 'One process keeps everything in memory.',
  shared: 'Several processes share one store.',
});

const Viewer = builder.objectRef<CallingPrincipal>('Viewer').implement({
  description: 'The requester, and the node that answers.',
  fields: (t) => ({
    kind: t.expose('kind', { type: ViewerKindEnum, description: 'The kind of requester.' }),
    userId: t.id({
      nullable: true,
      description: 'The requester’s canonical user id; null for an administrator.',
      resolve: (requester) => (requester.kind === 'user' ? requester.userId : null),
    }),
    scopes: t.field({
      type: [ScopeEnum],
      description: 'The scopes of the user’s token; empty for an administrator, whose rights are not scopes.',
      resolve: (requester) => (requester.kind === 'user' ? [...requester.scopes] : []),
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the requester’s token expires; null if it does not expire.',
    }),
    nodeId: t.id({ description: 'The id of the node that answers.', resolve: (_who, _args, { core }) => core.nodeId }),
    mode: t.field({
      type: ModeEnum,
      description: 'How this deployment keeps its state.',
      resolve: (_who, _args, { core }) => core.mode,
    }),
  }),
});

builder.queryField('viewer', (t) =>
  t.field({
    type: Viewer,
    description: 'The requester.',
    resolve: (_, _args, { requester }) => requireScope(requester, 'invoke'),
  }),
);
