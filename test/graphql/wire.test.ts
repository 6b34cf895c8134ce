/** Tests the GraphQL schema whose enums have the words of REST. */
import { isEnumType, isIntrospectionType } from 'graphql';
import { describe, expect, it } from 'vitest';
import { restSchema } from '../../src/graphql/schema/schema.ts';
import { admin, ask, dataOf } from './kit/run.ts';
import { fakeCore } from './kit/fake-core.ts';
import { command, connection } from './kit/rows.ts';

const { core } = fakeCore({
  connections: [connection('ann', 'c1', { disconnectCause: 'heartbeat_lost', disconnectedAt: 1 })],
  commands: [command({ stage: 'terminal', outcome: 'outcome_unknown', execution: 'may_have_run' })],
});

const CONNECTION = `query ($status: ConnectionStatus) {
  connections(status: $status) { nodes { status clientType disconnectCause metadata } completeness { sources { source } } }
}`;

describe('the schema of wire words', () => {
  it('outputs enums as their REST words, and leaves opaque JSON unchanged', async () => {
    const metadata = { status: 'CONNECTED', deep: { USER_OWNED: [1, null] } };
    expect(await dataOf(CONNECTION, { core, schema: restSchema, variables: { status: 'DISCONNECTED' } })).toEqual({
      connections: {
        nodes: [{ status: 'disconnected', clientType: 'browser', disconnectCause: 'heartbeat_lost', metadata }],
        completeness: { sources: [{ source: 'connections' }] },
      },
    });
    expect(await dataOf(CONNECTION, { core })).toEqual({
      connections: {
        nodes: [{ status: 'DISCONNECTED', clientType: 'BROWSER', disconnectCause: 'HEARTBEAT_LOST', metadata }],
        completeness: { sources: [{ source: 'CONNECTIONS' }] },
      },
    });
  });

  it('accepts enum names as variables, as the served schema does', async () => {
    const { errors } = await ask(CONNECTION, { core, schema: restSchema, variables: { status: 'disconnected' } });
    expect(errors?.[0]?.message).toMatch(/\$status/);
  });

  it('refuses to output a word that an enum does not have', () => {
    const enums = Object.values(restSchema.getTypeMap())
      .filter(isEnumType)
      .filter((type) => !isIntrospectionType(type));
    for (const type of enums) {
      for (const { value } of type.getValues()) expect(type.coerceOutputValue(value)).toBe(value);
      expect(() => type.coerceOutputValue('no such word'), type.name).toThrow(/has no such value/);
      expect(() => type.coerceOutputValue(null), type.name).toThrow();
    }
  });

  it('answers introspection with names, as every schema does', async () => {
    const document = '{ __type(name: "ConnectionStatus") { kind enumValues { name } } }';
    expect(await dataOf(document, { core, schema: restSchema, requester: admin })).toEqual({
      __type: { kind: 'ENUM', enumValues: ['CONNECTED', 'DISCONNECTED', 'STALE'].map((name) => ({ name })) },
    });
  });

  it('shows an outcome in the documented words', async () => {
    const document =
      '{ command(userId: "ann", clientId: "c1", commandId: "k1") { outcome delivery { stage lastProvenStage execution } } }';
    expect(await dataOf(document, { core, schema: restSchema })).toEqual({
      command: {
        outcome: 'outcome_unknown',
        delivery: { stage: 'terminal', lastProvenStage: 'dispatched', execution: 'may_have_run' },
      },
    });
  });
});
