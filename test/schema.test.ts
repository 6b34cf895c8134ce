/** Tests the schema: its committed text, its descriptions, and the rules for names and payloads. */
import { readFileSync } from 'node:fs';
import {
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isListType,
  isNonNullType,
  isObjectType,
  isSpecifiedScalarType,
  isUnionType,
  validateSchema,
  type GraphQLNamedType,
  type GraphQLObjectType,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { enumName } from '../src/graphql/schema/builder.ts';
import { printedSchema, schema, restSchema } from '../src/graphql/schema/schema.ts';
const types: readonly GraphQLNamedType[] = Object.values(schema.getTypeMap()).filter(
  (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
);

const pages: readonly GraphQLObjectType[] = types
  .filter(isObjectType)
  .filter(({ name }) => name.endsWith('Connection'));

describe('the schema', () => {
  it('equals the committed schema.graphql', () => {
    expect(printedSchema()).toBe(readFileSync(new URL('../schema.graphql', import.meta.url), 'utf8'));
  });

  it('is valid, and so is the one for REST words', () => {
    expect(validateSchema(schema)).toEqual([]);
    expect(validateSchema(restSchema)).toEqual([]);
    expect(restSchema.getType('ConnectionStatus')).not.toBe(schema.getType('ConnectionStatus'));
  });

  it('describes every type, field, argument, input and enum value', () => {
    const mute: string[] = [];
    const look = (name: string, { description }: { readonly description?: string | null | undefined }): void => {
      if (!description || !/[.`]$/.test(description.trim())) mute.push(name);
    };
    for (const type of types) {
      look(type.name, type);
      if (isEnumType(type)) for (const value of type.getValues()) look(`${type.name}.${value.name}`, value);
      if (isInputObjectType(type))
        for (const field of Object.values(type.getFields())) look(`${type.name}.${field.name}`, field);
      if (!isObjectType(type) && !isInterfaceType(type)) continue;
      for (const field of Object.values(type.getFields())) {
        look(`${type.name}.${field.name}`, field);
        for (const arg of field.args) look(`${type.name}.${field.name}(${arg.name})`, arg);
      }
    }
    expect(types.length).toBeGreaterThan(40);
    expect(mute).toEqual([]);
  });

  it('states a unit for every name that ends in Ms, and has no time as a plain number', () => {
    const fields = types
      .filter((type) => isObjectType(type) || isInputObjectType(type))
      .flatMap((type) => Object.values(type.getFields()));
    for (const { name, description, type } of fields) {
      if (name.endsWith('Ms')) expect(description, name).toMatch(/millisecond/);
      if (/(At|deadline)$/.test(name)) expect(String(getNamedType(type)), name).toBe('DateTime');
    }
  });

  it('has no payload in types of delivery, waits or alerts', () => {
    for (const name of [
      'DeliveryRecord',
      'PendingRpc',
      'PendingRpcAlert',
      'DedupSighting',
      'InstanceMismatch',
      'Stream',
    ]) {
      const type = schema.getType(name);
      if (!isObjectType(type)) throw new Error(`no ${name}`);
      const opaque = Object.values(type.getFields()).filter((field) => getNamedType(field.type).name === 'JSON');
      expect(opaque, name).toEqual([]);
    }
  });

  it('looks rows up by their natural keys, and each by its id', () => {
    expect(Object.keys(schema.getQueryType()?.getFields() ?? {}).sort()).toEqual([
      'actionPermissions',
      'actions',
      'auditChain',
      'auditCheck',
      'auditEvents',
      'browserWindow',
      'browserWindowCount',
      'browserWindows',
      'command',
      'commandHistory',
      'commands',
      'connection',
      'connections',
      'context',
      'contextCount',
      'contexts',
      'dedup',
      'delivery',
      'devices',
      'findCommands',
      'flapping',
      'messages',
      'node',
      'nodes',
      'pauseReach',
      'pauses',
      'pendingRpcCount',
      'pendingRpcCountByNode',
      'pendingRpcs',
      'preflightInvocation',
      'rawMessages',
      'revocations',
      'series',
      'server',
      'site',
      'siteSession',
      'sites',
      'streams',
      'topClients',
      'user',
      'users',
      'viewer',
      'workers',
    ]);
  });
});

it('every mutation answers a union with Refusal', () => {
  const mutations = Object.values(schema.getMutationType()?.getFields() ?? {});
  expect(mutations.length).toBeGreaterThan(14);
  for (const { name, type } of mutations) {
    const answer = getNamedType(type);
    const members = isUnionType(answer) ? answer.getTypes().map((member) => member.name) : [];
    expect([name, members]).toEqual([name, expect.arrayContaining(['Refusal'])]);
    expect(members.length, name).toBeGreaterThan(1);
  }
});

describe('semantics of the interface, in the descriptions of their types', () => {
  const descriptionOf = (name: string): string => schema.getType(name)?.description ?? '';

  it('an advertisement is capability, never authorization', () => {
    expect(descriptionOf('ActionAdvertisement')).toMatch(
      /evidence that the client can run it, never that a caller may invoke it/,
    );
    for (const refuser of ['central policy', 'own policy', 'approval', 'argument', 'targeting', 'leases', 'handler'])
      expect(descriptionOf('ActionAdvertisement')).toContain(refuser);
  });

  it('a pending RPC shows only that its waiter is unresolved', () => {
    expect(descriptionOf('PendingRpc')).toMatch(/has not been resolved\. Nothing more is shown/);
  });

  it('sightings concern ingestion, not execution', () => {
    expect(descriptionOf('DedupSighting')).toMatch(/server ingested.*not say how often the client executed/);
  });

  it('deduplication concerns ingestion, not execution', () => {
    expect(descriptionOf('DedupStats')).toMatch(
      /what the server ingested, and does not say how often any client executed/,
    );
    expect(descriptionOf('IngestVerdict')).toMatch(/neither says that anybody acted on it/);
  });

  it('delivery never means that an external effect is complete', () => {
    expect(descriptionOf('DeliveryRecord')).toMatch(
      /no field of it ever means that an effect outside the client is complete/,
    );
  });

  it('a task on a worker is only a current assignment in the registry', () => {
    for (const name of ['ExecutionContext', 'Workers'])
      expect(descriptionOf(name)).toMatch(
        /neither that a durable job system owns the task nor that any effect of it is complete/,
      );
  });

  it('reading never moves work', () => {
    expect(descriptionOf('Query')).toMatch(/Reading never changes, renews or releases any work/);
  });
});

describe('every listing', () => {
  it('is a Relay connection with rows, a next cursor and its completeness', () => {
    expect(pages.map(({ name }) => name).sort()).toEqual([
      'AuditEventConnection',
      'BrowserWindowConnection',
      'CapacityScopeConnection',
      'ConnectionSnapshotConnection',
      'DeliveryRecordConnection',
      'DeviceConnection',
      'DispatcherNodeConnection',
      'ExecutionContextConnection',
      'MessageConnection',
      'PauseConnection',
      'PendingRpcConnection',
      'RevocationConnection',
      'SiteConnection',
      'SiteSessionConnection',
      'StreamConnection',
      'UserConnection',
    ]);
    for (const page of pages) {
      const row = page.name.slice(0, -'Connection'.length);
      const shape = Object.fromEntries(
        Object.entries(page.getFields()).map(([name, { type }]) => [name, String(type)]),
      );
      expect(shape).toEqual({
        edges: `[${row}Edge!]!`,
        nodes: `[${row}!]!`,
        pageInfo: 'PageInfo!',
        nextCursor: 'String',
        completeness: 'Completeness!',
      });
    }
  });

  it('takes a bounded `first` and a cursor, and costs by its size', () => {
    const fields = types.filter(isObjectType).flatMap((type) => Object.values(type.getFields()));
    const paged = fields.filter((field) => getNamedType(field.type).name.endsWith('Connection'));
    expect(paged.length).toBeGreaterThanOrEqual(10);
    for (const { name, args, extensions } of paged) {
      const first = args.find((arg) => arg.name === 'first');
      expect(String(first?.type), name).toBe('Int!');
      expect(first?.extensions, name).toMatchObject({ minimum: 1, maximum: 1000 });
      expect(
        args.some((arg) => arg.name === 'after'),
        name,
      ).toBe(true);
      const complexity = extensions['complexity'];
      if (typeof complexity !== 'function') throw new Error(`${name} costs nothing`);
      const context = { requester: { kind: 'admin' } };
      const { multiplier, field, scan = 0 } = complexity({ first: 7 }, context, null);
      expect([multiplier, field - scan], name).toEqual([7, 1]);
      expect(complexity({ first: -1_000_000 }, context, null).multiplier).toBe(1);
    }
  });

  it('without pages states its bound or has a completeness beside it', () => {
    const bare: string[] = [];
    for (const type of types.filter(isObjectType)) {
      if (type.name.endsWith('Connection')) continue;
      for (const field of Object.values(type.getFields())) {
        const list = isNonNullType(field.type) ? field.type.ofType : field.type;
        if (!isListType(list) || !isObjectType(getNamedType(list))) continue;
        const beside = 'completeness' in type.getFields() || type.name === 'Completeness';
        if (!beside && !/at most \d/.test(field.description ?? '')) bare.push(`${type.name}.${field.name}`);
      }
    }
    expect(bare).toEqual([]);
  });
});

describe('enums', () => {
  it('have the REST word as their internal value, and error codes as their name too', () => {
    const enums = types.filter(isEnumType);
    expect(enums.length).toBeGreaterThan(15);
    for (const type of enums) {
      const nameOf = type.name === 'RefusalCode' ? String : enumName;
      for (const { name, value } of type.getValues()) expect(name, type.name).toBe(nameOf(String(value)));
    }
    expect(enumName('user-owned')).toBe('USER_OWNED');
    expect(enumName('outcome_unknown')).toBe('OUTCOME_UNKNOWN');
  });
});
