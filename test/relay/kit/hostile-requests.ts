/** Lists hostile HTTP requests, each with the answer that it must get. */
import { MAX_BODY_BYTES } from '../../../src/core/limits.ts';
import type { Ask } from '../../http/kit/http-relay.ts';

/** A request and the status and code that it must always get. */
export type HostileRequest = {
  readonly name: string;
  readonly path: string;
  readonly ask?: Ask;
  readonly answer: readonly [number, string];
};

const INVOKE = '/connections/neighbour/nobody/actions/open';
const json = { 'content-type': 'application/json' };
const post = (body: string | Buffer, headers: Record<string, string> = json): Ask => ({
  method: 'POST',
  body,
  headers,
});
const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

const reads: readonly (readonly [string, number, string])[] = [
  ['/connections?limit=0', 400, 'invalid_argument'],
  ['/connections?limit=1001', 400, 'invalid_argument'],
  ['/connections?limit=1e1', 400, 'invalid_argument'],
  ['/connections?limit=', 400, 'invalid_argument'],
  ['/connections?limit=1&limit=2', 400, 'invalid_argument'],
  ['/connections?status=CONNECTED', 400, 'invalid_argument'],
  ['/connections?stauts=connected', 400, 'invalid_argument'],
  ['/connections?__proto__=1', 400, 'invalid_argument'],
  ['/connections?cursor=', 400, 'invalid_argument'],
  ['/connections?cursor=c1.WyJhIl0.AAAA', 400, 'invalid_cursor'],
  [`/connections?cursor=${'c'.repeat(4000)}`, 400, 'invalid_cursor'],
  [`/connections?cursor=${'c'.repeat(5000)}`, 400, 'invalid_argument'],
  ['/connections?node_id=a%20b', 400, 'invalid_argument'],
  ['/connections?user_id=%ED%A0%80', 400, 'invalid_argument'],
  [`/users/${'u'.repeat(129)}`, 400, 'invalid_user'],
  ['/users/%00', 400, 'invalid_user'],
  ['/users/%ZZ', 400, 'invalid_argument'],
  ['/users/a%2Fb', 400, 'invalid_user'],
  ['/connections/neighbour/a%20b/actions', 400, 'invalid_argument'],
  ['/history/messages', 400, 'invalid_argument'],
  ['/history/messages?stream=neighbour', 400, 'invalid_argument'],
  ['/history/messages?stream=neighbour/../x', 400, 'invalid_argument'],
  [`/history/messages?stream=neighbour/${'a/'.repeat(9)}a`, 400, 'invalid_argument'],
  ['/history/messages?stream=neighbour/clients/calm&kinds=command,,result', 400, 'invalid_argument'],
  ['/history/messages?stream=neighbour/clients/calm&after_time=yesterday', 400, 'invalid_argument'],
  ['/history/messages?stream=neighbour/clients/calm&include_payload=yes', 400, 'invalid_argument'],
  ['/rpc/pending?min_age_ms=-1', 400, 'invalid_argument'],
  ['/rpc/pending?check_instance=%20', 400, 'invalid_argument'],
  ['/commands/neighbour/calm/none?within_ms=600001', 400, 'invalid_argument'],
  ['/nothing', 404, 'not_found'],
  ['//users', 404, 'not_found'],
];

const bodies: readonly (readonly [string, Ask, number, string])[] = [
  ['no JSON', post('{"params":'), 400, 'invalid_argument'],
  ['a list', post('[]'), 400, 'invalid_argument'],
  ['a text', post('"planted-payload"'), 400, 'invalid_argument'],
  ['a member that nobody knows', post('{"parms":{}}'), 400, 'invalid_argument'],
  ['a member of the wrong type', post('{"params":[]}'), 400, 'invalid_argument'],
  ['a prototype', post('{"__proto__":{"polluted":1}}'), 400, 'invalid_argument'],
  ['a member of the relay', post('{"params":{"__Cooperative_Site_id":1}}'), 400, 'reserved_parameter'],
  ['an id that is none', post('{"command_id":"a b"}'), 400, 'invalid_argument'],
  ['a budget out of range', post('{"respond_within_ms":1e9}'), 400, 'invalid_argument'],
  ['a number that is none', post('{"respond_within_ms":1e999}'), 400, 'invalid_argument'],
  ['a stage that is none', post('{"wait_for":"later"}'), 400, 'invalid_argument'],
  ['too deep a nest', post(`{"params":{"a":${deep(300)}}}`), 400, 'invalid_argument'],
  ['a nest that only opens', post('['.repeat(100_000)), 400, 'invalid_argument'],
  ['bytes that are no UTF-8', post(Buffer.from([0x7b, 0xff, 0x7d])), 400, 'invalid_argument'],
  ['too much', post(`{"params":{"a":"${'x'.repeat(MAX_BODY_BYTES)}"}}`), 413, 'payload_too_large'],
  ['a form', post('a=1', { 'content-type': 'application/x-www-form-urlencoded' }), 415, 'unsupported_media_type'],
  ['compression', post('{}', { ...json, 'content-encoding': 'gzip' }), 415, 'unsupported_media_type'],
  [
    'another charset',
    post('{}', { 'content-type': 'application/json; charset=latin1' }),
    415,
    'unsupported_media_type',
  ],
];

const methods = ['DELETE', 'PUT', 'PATCH', 'OPTIONS', 'PURGE'].map((method): HostileRequest => ({
  name: `${method} of what can only be read`,
  path: '/users',
  ask: { method },
  answer: [405, 'method_not_allowed'],
}));

/** The hostile requests to REST. */
export const REST: readonly HostileRequest[] = [
  ...reads.map(([path, ...answer]): HostileRequest => ({ name: path.slice(0, 60), path, answer })),
  ...bodies.map(([name, ask, ...answer]): HostileRequest => ({ name, path: INVOKE, ask, answer })),
  ...methods,
];

const graphql = (body: unknown): Ask =>
  post(JSON.stringify(body), { ...json, accept: 'application/graphql-response+json' });
const query = (name: string, text: string, code: string, more: object = {}): HostileRequest => ({
  name,
  path: '/graphql',
  ask: graphql({ query: text, ...more }),
  answer: [400, code],
});
const many = (count: number, one: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => one(n)).join(' ');

/** The hostile requests to GraphQL, sent by POST. */
export const GRAPHQL: readonly HostileRequest[] = [
  {
    name: 'an argument out of range, within an answer',
    path: '/graphql',
    ask: graphql({ query: '{ users(first: 0) { nodes { id } } }' }),
    answer: [200, 'invalid_argument'],
  },
  query('two operations and no name', 'query A { viewer { kind } } query B { viewer { kind } }', 'invalid_argument'),
  query('an operation that is not there', 'query A { viewer { kind } }', 'invalid_argument', {
    operationName: 'B',
  }),
  { name: 'no JSON', path: '/graphql', ask: post('{'), answer: [400, 'invalid_argument'] },
  {
    name: 'a batch',
    path: '/graphql',
    ask: graphql([{ query: '{ viewer { kind } }' }]),
    answer: [400, 'invalid_argument'],
  },
  { name: 'no query', path: '/graphql', ask: graphql({}), answer: [400, 'invalid_argument'] },
  { name: 'a query that is no text', path: '/graphql', ask: graphql({ query: 7 }), answer: [400, 'invalid_argument'] },
  {
    name: 'variables that are a list',
    path: '/graphql',
    ask: graphql({ query: '{ viewer { kind } }', variables: [1] }),
    answer: [400, 'invalid_argument'],
  },
  query('a document that ends too early', '{ viewer {', 'graphql_parse_failed'),
  query('a NUL', '{ viewer { kind } \u0000}', 'graphql_parse_failed'),
  query('an unknown field', '{ viewer { password } }', 'graphql_validation_failed'),
  query('an unknown fragment', '{ viewer { ...Gone } }', 'graphql_validation_failed'),
  query(
    'a fragment within itself',
    'query { viewer { ...A } } fragment A on Viewer { kind ...A }',
    'graphql_validation_failed',
  ),
  query('a variable that is missing', 'query ($id: ID!) { user(userId: $id) { id } }', 'invalid_argument'),
  query('a variable of the wrong type', 'query ($n: Int!) { users(first: $n) { nodes { id } } }', 'invalid_argument', {
    variables: { n: 'x' },
  }),
  query('too many tokens', `{ ${many(5000, () => 'viewer')} }`, 'too_complex'),
  query('too many aliases', `{ viewer { ${many(101, (n) => `a${n}: kind`)} } }`, 'too_complex'),
  query('too many root fields', `{ ${many(11, () => 'viewer { kind }')} }`, 'too_complex'),
  query('too many directives', `{ viewer { ${many(51, () => 'kind @skip(if: false)')} } }`, 'too_complex'),
  query('too deep', `{ ${'user { '.repeat(13)}id${' }'.repeat(13)} }`, 'too_complex'),
  query(
    'too much',
    '{ users(first: 1000) { nodes { connections(first: 1000) { nodes { clientId } } } } }',
    'too_complex',
  ),
];

/** The hostile requests for event streams. */
export const STREAMS: readonly HostileRequest[] = [
  {
    name: 'a made-up token',
    path: '/graphql/stream?token=made-up',
    ask: { headers: { accept: 'text/event-stream' } },
    answer: [404, 'not_found'],
  },
  {
    name: 'an operation for nobody',
    path: '/graphql/stream?token=made-up',
    ask: graphql({ query: '{ viewer { kind } }' }),
    answer: [404, 'not_found'],
  },
  {
    name: 'no document',
    path: '/graphql/stream',
    ask: post('{}', { ...json, accept: 'text/event-stream' }),
    answer: [400, 'invalid_argument'],
  },
  {
    name: 'PATCH',
    path: '/graphql/stream',
    ask: { ...post('{}'), method: 'PATCH' },
    answer: [405, 'method_not_allowed'],
  },
  {
    name: 'another path below',
    path: '/graphql/streams',
    ask: { headers: { accept: 'text/event-stream' } },
    answer: [404, 'not_found'],
  },
];
