/** Draws JSON texts that must pass through the relay unchanged, and sends them over each interface. */
import * as fc from 'fast-check';
import { JSON_DEPTH } from '../../../src/core/limits.ts';
import { openRaw, type RawStream } from '../../graphql/kit/stream.ts';
import { ADMIN, type Answer } from '../../http/kit/http-relay.ts';
import { startTestRelay, type Requester, type TestRelay, type Welcomed } from './test-relay.ts';

/** JSON objects that no serializer would write, or that no double or JavaScript object could hold. */
const HOSTILE: readonly string[] = [
  '{"n":9007199254740993,"m":-9007199254740993,"huge":1e400,"tiny":1E-400,"zero":-0,"half":0.1000000000000000055,"e":1E5,"long":12345678901234567890123}',
  '{"10":1,"9":2,"2":3,"b":4,"a":5,"01":6}',
  '{"a":1,"a":{"a":2,"a":3},"a":[1.0,1.00,10e-1]}',
  '{"__proto__":{"x":1},"constructor":1,"toString":null,"hasOwnProperty":"no","__proto__":2}',
  '{"\\u0061":"\\u0041\\/\\ud83d\\ude00","lone":"\\ud800 \\udc00","line":"\\n\\r\\u2028","\\ud800":1,"é":"\u2028 ü"}',
  '{ "space" :\t[ 1 ,\n  {\r\n "in" : [ ] , "empty" : { }  } ]\n}',
  '{"typename":"\\"__typename\\":\\"Refusal\\",","outcome":"\\"outcome\\":null","null":null,"s":"__proto__ \\\\u0061"}',
  `{"deep":${'['.repeat(150)}1.50${']'.repeat(150)},"big":"${'x'.repeat(17_000)}","n":1.0}`,
];

/** An object of this many levels. */
export function nestedObject(levels: number): string {
  return `{"deep":${'['.repeat(levels - 1)}1.50${']'.repeat(levels - 1)}}`;
}

/** The deepest text that a payload may be. What is put around it, such as a body, does not count. */
export const DEEPEST = nestedObject(JSON_DEPTH);

const NUMBERS = ['0', '-0', '1.0', '1e3', '1E+3', '9007199254740993', '0.30000000000000004', '1e400', '-1.50e-7'];
const NAMES = ['"10"', '"9"', '"2"', '"a"', '"a"', '"__proto__"', '"\\u0061"', '"\\ud800"', '""', '"é"', '"__a"'];

const value = fc.letrec<{ value: string; object: string }>((tie) => {
  const gap = fc.constantFrom('', '', ' ', '\n', ' \r\n\t');
  const object = fc
    .tuple(fc.array(fc.tuple(fc.constantFrom(...NAMES), tie('value')), { maxLength: 4 }), gap)
    .map(
      ([members, space]) =>
        `{${space}${members.map(([name, of]) => `${name}${space}:${of}`).join(`${space},`)}${space}}`,
    );
  const array = fc
    .tuple(fc.array(tie('value'), { maxLength: 3 }), gap)
    .map(([items, space]) => `[${items.join(`,${space}`)}${space}]`);
  const word = fc.constantFrom('true', 'false', 'null', '"x"', '"\\u0000"', '"a\\\\"', '"<\u2029>"');
  return { value: fc.oneof({ maxDepth: 4 }, fc.constantFrom(...NUMBERS), word, array, object), object };
});

/** The hostile texts and some random ones. They are the same in each run. */
export const TEXTS: readonly string[] = [...HOSTILE, ...fc.sample(value.object, { numRuns: 12, seed: 12 })];

/** Returns a JSON text without white space between its tokens. */
export function compact(text: string): string {
  return text.replace(/("(?:[^"\\]|\\.)*")|[ \t\r\n]+/g, '$1');
}

/** Returns a JSON text as a GraphQL literal; null if a name in it is not a GraphQL name, or is repeated. */
export function literalOf(text: string): string | null {
  const names = [...text.matchAll(/("(?:[^"\\]|\\.)*")\s*:/g)].map(([, name = '""']) => name);
  if (names.some((name) => !/^"[_A-Za-z]\w*"$/.test(name)) || new Set(names).size < names.length) return null;
  return text.replace(/"([_A-Za-z]\w*)"(\s*:)/g, '$1$2');
}

export type JsonRelay = TestRelay & {
  /** The client that is called. */
  readonly peer: Welcomed;
  readonly requester: Welcomed;
  /** Sends a POST with exactly this text. */
  send(path: string, body: string, requester?: Requester): Promise<Answer>;
  /** Sends one GraphQL request by POST: the document, and the text of its variables. */
  query(query: string, variables?: string, requester?: Requester): Promise<Answer>;
  /** Sends one GraphQL request by GET. */
  get(query: string, variables: string, requester?: Requester): Promise<Answer>;
  listen(query: string, variables: string, requester?: Requester): Promise<RawStream>;
  /** Answers the next command with this progress and this result. Returns what its client received. */
  serve(result: string, progress?: string): Promise<string>;
};

export async function startJsonRelay(fastPath: boolean): Promise<JsonRelay> {
  const at = await startTestRelay({ rawMessages: true, fastPath });
  const peer = await at.client({ payload: { actions: [{ name: 'open' }] } });
  const requester = await at.caller('alice');
  const send: JsonRelay['send'] = (path, body, requester = 'alice') =>
    at.rest(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body, requester });
  const requested = (query: string, variables = '{}'): string =>
    `{"variables" : ${variables}, "query":${JSON.stringify(query)}}`;
  const search = (query: string, variables: string): string =>
    `/graphql?query=${encodeURIComponent(query)}&variables=${encodeURIComponent(variables)}`;
  return {
    ...at,
    peer,
    requester,
    send,
    query: (query: string, variables?: string, requester: Requester = 'admin') =>
      send('/graphql', requested(query, variables), requester),
    get: (query: string, variables: string, requester: Requester = 'admin') =>
      at.rest(search(query, variables), { requester }),
    async listen(query: string, variables: string, requester: Requester = 'admin') {
      const bearer = requester === 'admin' ? ADMIN : await at.token(requester);
      const headers = { accept: 'text/event-stream', authorization: `Bearer ${bearer}` };
      return openRaw(at.url + search(query, variables), { headers });
    },
    async serve(result: string, progress?: string) {
      const { command_id, payload } = await peer.next('command');
      peer.raw(JSON.stringify({ type: 'ack', command_id }));
      if (progress !== undefined) peer.raw(`${JSON.stringify({ type: 'progress', command_id })}\n${progress}`);
      peer.raw(`${JSON.stringify({ type: 'result', command_id })}\n${result}`);
      await peer.next('result_ack');
      return payload ?? '{}';
    },
  };
}
