/** Builds a small schema with REST documents, for tests of the compiler. */
import { buildSchema, isEnumType, isObjectType, type GraphQLSchema } from 'graphql';
import { DocumentReading } from '../../../src/core/document-reading.ts';
import { CallboardError } from '../../../src/core/errors.ts';
import { silentLog, type Log } from '../../../src/core/ports.ts';
import { createMask } from '../../../src/graphql/execute/mask.ts';
import { createPlans } from '../../../src/graphql/execute/executor.ts';
import { createRestHandler } from '../../../src/rest/serve.ts';
import type { HangUpSignal } from '../../../src/web/hang-up.ts';
import { createCrypto } from '../../../src/platform/system.ts';
import { startRestServer, type RestServer } from './rest-server.ts';

const SDL = `
  scalar DateTime
  scalar JSON
  enum Color { RED DARK_BLUE }
  type Query {
    things("Whose they are." ownerId: ID, color: Color, colors: [Color!], since: DateTime, bright: Boolean, first: Int! = 100): Things!
    thing(id: ID!): Thing
    fails(how: String!): Thing
    given(id: ID!, note: String): JSON!
  }
  type Mutation { act(input: ActInput!): ActResult! keep(items: [ItemInput!]!): JSON! judge(items: [ItemInput!]!): Judged! }
  input ActInput { id: ID!, color: Color! = RED, params: JSON, at: DateTime, capabilityProfile: ProfileInput, times: Int }
  input ProfileInput { actionInvocation: Boolean!, sharing: Boolean! = false }
  input ItemInput { clientId: ID!, payload: JSON, colors: [Color!] }
  type Things { nodes: [Thing!]! nextCursor: String }
  type Thing { "Its own." id: ID! color: Color madeAt: DateTime! extra: JSON parts: [Thing] twin: Thing }
  interface Invocation { commandId: ID! outcome: String error: Failure }
  type Outcome implements Invocation { commandId: ID! outcome: String error: Failure }
  type Pending implements Invocation { commandId: ID! outcome: String error: Failure }
  type Failure { code: String! message: String! }
  type Judged { list: Listed! }
  type Listed { items: [Verdict!]! }
  type Verdict { id: ID! why: Failure extra: Thing }
  type Receipt { state: Color! }
  type Refusal { code: String! message: String! by: Color! retryAfterMs: Int }
  union ActResult = Outcome | Pending | Receipt | Refusal
`;

const DOCUMENTS = `
  "Things, by what they are."
  query ListThings($owner_id: ID, $color: Color, $colors: [Color!], $since: DateTime, $bright: Boolean, $limit: Int! = 100)
  @rest(get: "/things", access: ADMIN) {
    things(ownerId: $owner_id, color: $color, colors: $colors, since: $since, bright: $bright, first: $limit) {
      items: nodes { ...Whole }
      next_cursor: nextCursor
    }
  }
  query OneThing($id: ID!) @rest(get: "/things/{id}", access: INVOKE) { thing(id: $id) { ...Whole } }
  query TwinOfThing($id: ID!) @rest(get: "/things/{id}/twin", access: INVOKE, body: "thing.twin") { thing(id: $id) { twin { id } } }
  query Fails($how: String!) @rest(get: "/fails/{how}", access: ANY) { fails(how: $how) { id } }
  query Given($id: ID!, $note: String) @rest(get: "/given/{id}", access: ANY) { given(id: $id, note: $note) }
  mutation Act($id: ID!, $color: Color, $params: JSON, $at: DateTime, $capability_profile: ProfileInput, $times: Int)
  @rest(post: "/things/{id}", access: INVOKE) {
    act(input: { id: $id, color: $color, params: $params, at: $at, capabilityProfile: $capability_profile, times: $times }) {
      ... on Invocation { command_id: commandId outcome error { code message } }
      ... on Receipt { state }
      ... on Refusal { code message by retry_after_ms: retryAfterMs }
    }
  }
  mutation Keep($items: [ItemInput!]!) @rest(put: "/kept", access: HOST, bodyAs: "items") { keep(items: $items) }
  mutation Judge($items: [ItemInput!]!) @rest(post: "/judged", access: ANY, bodyAs: "items", itemRefusal: "list.items.why") {
    judge(items: $items) { list { items { id why { code message } } } }
  }
  fragment Whole on Thing { id color made_at: madeAt extra }
`;

/**
 * The state of the small schema: what its resolvers received so far (`seen`), what they logged, the answer of the next
 * `act`, and the signal of the last request.
 */
export type Small = {
  readonly seen: Record<string, unknown>[];
  readonly logged: unknown[];
  answer: object;
  signal: HangUpSignal | undefined;
};

/** Returns a schema with one of each kind of input and answer. Its enums output the words of REST. */
export function smallSchema(small: Small): GraphQLSchema {
  const schema = buildSchema(SDL);
  const color = schema.getType('Color');
  if (isEnumType(color)) {
    for (const value of color.getValues()) value.value = value.name.toLowerCase().replace('_', '-');
    color.coerceOutputValue = String;
  }
  const see = (args: Record<string, unknown>): void => void small.seen.push(args);
  resolve(schema, 'Query', {
    things: (args) => (see(args), { nodes: [thing('a'), thing('b')], nextCursor: null }),
    thing: (args) => (see(args), args['id'] === 'none' ? null : thing(String(args['id']))),
    fails: ({ how }) => failing(String(how)),
    given: (args) => (see(args), args),
  });
  resolve(schema, 'Mutation', {
    act: (args) => (see(args), small.answer),
    keep: (args) => (see(args), { kept: true }),
    judge: (args) => (see(args), small.answer),
  });
  const limit = schema
    .getQueryType()
    ?.getFields()
    ['things']?.args.find(({ name }) => name === 'first');
  if (limit) Object.assign(limit.extensions, { minimum: 1, maximum: 1000, other: () => {} });
  return schema;
}

export async function startSmall(basePath = ''): Promise<RestServer & { readonly small: Small }> {
  const small: Small = { seen: [], logged: [], answer: {}, signal: undefined };
  const log: Log = { ...silentLog, error: (fields) => void small.logged.push(fields) };
  const schema = smallSchema(small);
  const handler = createRestHandler({
    schema,
    plans: createPlans(schema),
    mask: createMask({ log, crypto: createCrypto('test') }),
    contextOf: ({ requester, signal }) => ((small.signal = signal), { requester, signal }),
    read: (_, run) => run(new DocumentReading()),
    basePath,
    documents: [{ name: 'small.graphql', text: DOCUMENTS }],
  });
  return { ...(await startRestServer(handler, ['/fails/{how}'])), small };
}

function thing(id: string) {
  const twin = id === 'single' ? null : { id: 'twin' };
  return { id, color: 'dark-blue', madeAt: '2026-01-01T00:00:00.000Z', extra: { RED: ['DARK_BLUE'] }, twin };
}

function failing(how: string): object {
  if (how === 'partly') return { id: null };
  if (how === 'secretly') throw new Error('password is 1234');
  if (how === 'argument')
    throw new CallboardError('invalid_argument', 'how: no', { errors: [{ parameter: 'ownerId', detail: 'no' }] });
  if (how === 'busy') throw new CallboardError('capacity_exceeded', 'Full.', { retryAfterMs: 2100 });
  throw new CallboardError('not_connected', 'It is away.', { command: { userId: 'u', clientId: 'c', commandId: 'm' } });
}

type Resolvers = Record<string, (args: Record<string, unknown>) => unknown>;

function resolve(schema: GraphQLSchema, typeName: string, resolvers: Resolvers): void {
  const type = schema.getType(typeName);
  if (!isObjectType(type)) throw new Error(typeName);
  for (const [name, run] of Object.entries(resolvers)) {
    const field = type.getFields()[name];
    if (field) field.resolve = (_source: unknown, args: Record<string, unknown>) => run(args);
  }
}
