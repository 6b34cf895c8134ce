/** Generates hostile GraphQL documents from a seed. */
import { schema } from '../../src/graphql/schema/schema.ts';
import { randomQuery } from '../../test/graphql/kit/random.ts';
import { readRestDocuments } from '../../test/relay/kit/rest-documents.ts';
import { hostileText, KNOWN, likelyText, someUser } from './hostile.ts';
import { jsonText } from './json-text.ts';
import { mutate } from './mutate.ts';
import { Draw } from '../lib/random.ts';

/**
 * One request to /graphql. `rest`: the JSON text of all members of the request besides the query, each after a comma.
 */
type DocumentInput = {
  readonly who: string;
  readonly query: string;
  readonly rest: string;
  readonly mutates: boolean;
};

/**
 * Returns the JSON text of the request. `mark`: changes the document so that the relay has not seen it before, without
 * changing its cost.
 */
export function bodyOf({ query, rest }: DocumentInput, mark = ''): string {
  return `{"query":${JSON.stringify(mark === '' ? query : `${query}\n# ${mark}`)}${rest}}`;
}

const KIB = 1024;
/** The maximum size of a document in characters, which leaves room for the rest of the body. */
const MOST = 900 * KIB;
const CORPUS = readRestDocuments().map(({ text }) => text);
const USER_STREAM = 'user-0/clients/desk';

/** Forms of documents whose cost to parse, validate or execute grows with `n`. */
export const GROWING_DOCUMENTS: readonly ((n: number) => string)[] = [
  (n) => `{ ${many(n, (i) => `a${i}: __typename`)} }`,
  (n) => `{ ${many(n, () => '__typename')} }`,
  (n) => `{ users { nodes { ${many(n, (i) => `a${i}: id`)} } } }`,
  (n) => `{ users { nodes { ${many(n, () => 'id connectionCount')} } } }`,
  (n) => `{ ${'users { nodes { '.repeat(n)}id${' } }'.repeat(n)} }`,
  (n) => `query (${many(n, (i) => `$v${i}: Int`)}) { __typename }`,
  (n) => `{ users ${'@include(if: true) '.repeat(n)}{ nodes { id } } }`,
  (n) =>
    `{ ...F0 } ${many(n, (i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`)} fragment F${n} on Query { __typename }`,
  (n) => `{ ...A } fragment A on Query { ${'... on Query { '.repeat(n)}...A${' }'.repeat(n)} }`,
  (n) => `{ ${many(n, (i) => `nothing${i}`)} }`,
  (n) => `{ messages(stream: "${'x'.repeat(n)}") { nextCursor } }`,
  (n) => `{ messages(stream: """${' \n'.repeat(n)}""") { nextCursor } }`,
  (n) => `{ contextCount(filter: {${many(n, (i) => `k${i}: 1`)}}) { count } }`,
  (n) => `{ messages(stream: "s", kinds: [${many(n, () => 'RESULT')}]) { nextCursor } }`,
  (n) => `${'#'.repeat(n)}\n{ __typename }`,
  (n) => `{ __schema { types { ${'fields { type { '.repeat(n)}name${' } }'.repeat(n)} } } }`,
  (n) => `{ user(userId: "a@${'.'.repeat(n)}@") { id } }`,
  (n) => `{ user(userId: "${'\u0301\u0327'.repeat(n)}") { id } }`,
];

function many(count: number, item: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => item(i)).join(' ');
}

export function documentInput(seed: number, index: number): DocumentInput {
  const draw = new Draw(seed, 'documents', index);
  const { text, variables } = source(draw, seed, index);
  const query = draw.chance(0.3) ? mutate(draw, text) : text;
  const odd = draw.chance(0.05)
    ? `,"operationName":${jsonText(draw, 2_000)},"extensions":${jsonText(draw, 2_000)}`
    : '';
  return { who: requester(draw), query, rest: `,"variables":${variables}${odd}`, mutates: /\bmutation\b/.test(query) };
}

/** Draws the requester. Usually it has the required permission, so that most documents are executed. */
function requester(draw: Draw): string {
  if (draw.chance(0.7)) return 'admin';
  return draw.chance(0.7) ? someUser(draw) : draw.pick(['nobody', 'wrong']);
}

function source(draw: Draw, seed: number, index: number): { readonly text: string; readonly variables: string } {
  const kind = draw.int(0, 9);
  if (kind < 4) {
    const user = someUser(draw);
    const known = { ...KNOWN_ARGUMENTS, userId: user, id: user, stream: USER_STREAM };
    const { text, variables } = randomQuery(schema, { seed: seed * 7919 + index, known });
    return { text, variables: draw.chance(0.9) ? JSON.stringify(variables) : jsonText(draw, MOST) };
  }
  if (kind < 8) {
    const text = draw.pick(CORPUS);
    return { text, variables: variablesOf(draw, text) };
  }
  if (kind === 8 && draw.chance(0.5)) return { text: draw.pick(FILTERED), variables: `{"f":${filterText(draw)}}` };
  return { text: draw.pick(GROWING_DOCUMENTS)(draw.size(draw.chance(0.2) ? 20 * KIB : 200)), variables: '{}' };
}

/** The operations that take an input object as a variable. */
const FILTERED: readonly string[] = [
  'query ($f: PendingRpcFilter) { pendingRpcCount(filter: $f) { count } }',
  'query ($f: ContextFilter) { contextCount(filter: $f) { count } }',
  'query ($f: BrowserWindowFilter) { browserWindowCount(filter: $f) { count } }',
  'mutation ($f: InvokeActionInput!) { invokeAction(input: $f) { __typename } }',
  'mutation ($f: [IngestMessageInput!]!) { ingestMessages(messages: $f) { __typename } }',
];

/** Draws an input object with up to thousands of members that its type does not have. */
function filterText(draw: Draw): string {
  const count = draw.size(draw.chance(0.5) ? 5_000 : 100);
  return `{${Array.from({ length: count }, (_, i) => `"k${i}":${i % 10}`).join(',')}}`;
}

const KNOWN_ARGUMENTS = { clientId: KNOWN.client, commandId: KNOWN.command, siteId: KNOWN.site, action: KNOWN.action };

/**
 * Draws JSON text with values for the declared variables, some of them hostile, and for variables that the operation
 * does not declare.
 */
function variablesOf(draw: Draw, text: string): string {
  const declared = [...(text.slice(0, text.indexOf('{')).matchAll(/\$(\w+): ([\w!\[\]]+)/g) ?? [])];
  const members = declared
    .filter(([, , type = '']) => type.endsWith('!') || draw.chance(0.4))
    .map(([, name = '', type = '']) => `${JSON.stringify(name)}:${valueOf(draw, name, type)}`);
  if (draw.chance(0.02)) members.push(`${JSON.stringify(hostileText(draw, 200))}:${jsonText(draw, MOST)}`);
  return `{${members.join(',')}}`;
}

function valueOf(draw: Draw, name: string, type: string): string {
  if (draw.chance(0.12)) return jsonText(draw, draw.chance(0.2) ? MOST : 8 * KIB);
  if (type.startsWith('Int')) return String(draw.pick([0, 1, 10, 1_000, -1, 2 ** 31, 300_000]));
  if (type.startsWith('Boolean')) return String(draw.chance(0.5));
  if (type.endsWith('Input!') || type.endsWith('Input')) return inputText(draw);
  if (name === 'user_id' || name === 'id') return JSON.stringify(likelyText(draw, someUser(draw)));
  if (name === 'stream') return JSON.stringify(likelyText(draw, USER_STREAM));
  const known: Readonly<Record<string, string>> = {
    client_id: KNOWN.client,
    command_id: KNOWN.command,
    site_id: KNOWN.site,
  };
  return JSON.stringify(likelyText(draw, known[name] ?? hostileText(draw)));
}

/** Draws JSON text with members that inputs of mutations have, and with other members. */
function inputText(draw: Draw): string {
  const members = [
    `"userId":${JSON.stringify(likelyText(draw, someUser(draw)))}`,
    `"clientId":${JSON.stringify(likelyText(draw, KNOWN.client))}`,
    `"action":${JSON.stringify(likelyText(draw, KNOWN.action))}`,
    `"params":${jsonText(draw, MOST)}`,
    `"commandId":"d-${draw.int(0, 1e6)}"`,
    `"waitFor":"${draw.pick(['ADMITTED', 'ACKNOWLEDGED', 'COMPLETED'])}"`,
    `"respondWithinMs":${draw.int(0, 3_000)}`,
    `"siteId":"${KNOWN.site}"`,
    `${JSON.stringify(hostileText(draw, 200))}:${jsonText(draw, 8 * KIB)}`,
  ];
  return `{${members.filter(() => draw.chance(0.7)).join(',')}}`;
}
