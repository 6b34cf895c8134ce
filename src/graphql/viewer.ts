import { requireScope, type Caller, type Scope } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';

const ViewerKindEnum = wireEnum<Caller['kind']>('ViewerKind', 'As what the asker is known.', {
  admin: 'An administrator.',
  user: 'A user.',
});

const ScopeEnum = wireEnum<Scope>('Scope', 'What a user’s token allows.', {
  connect: 'Connecting clients of the user.',
  invoke: 'Reading what is the user’s own, and commanding its clients.',
  host: 'Hosting sites of the user.',
});

export const ModeEnum = wireEnum<Core['mode']>('Mode', 'How this deployment keeps its state.', {
  direct: 'One process, in its memory.',
  shared: 'Several processes over one store.',
});

const Viewer = builder.objectRef<Caller>('Viewer').implement({
  description: 'Who asks, and which node answers.',
  fields: (t) => ({
    kind: t.expose('kind', { type: ViewerKindEnum, description: 'As what the asker is known.' }),
    userId: t.id({
      nullable: true,
      description: 'The canonical user; null for an administrator, who names none.',
      resolve: (who) => (who.kind === 'user' ? who.userId : null),
    }),
    scopes: t.field({
      type: [ScopeEnum],
      description: 'The scopes of a user’s token; empty for an administrator, whose rights are not scopes.',
      resolve: (who) => (who.kind === 'user' ? [...who.scopes] : []),
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the token expires; null if it does not.',
    }),
    nodeId: t.id({ description: 'The node that answers.', resolve: (_who, _args, { core }) => core.nodeId }),
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
    description: 'Who asks.',
    resolve: (_, _args, { who }) => requireScope(who, 'invoke'),
  }),
);
