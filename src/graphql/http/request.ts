/** Reads the bodies, parameters and headers of GraphQL requests, and sends errors in GraphQL's response format. */
import { BoundedMap } from '../../core/collections.ts';
import { CallboardError, invalid } from '../../core/errors.ts';
import {
  isArrayText,
  isObjectText,
  isRecord,
  type JsonFault,
  type JsonText,
  readMembers,
  jsonFault,
  readShaped,
  shapeFaultText,
  trustJson,
} from '../../core/json.ts';
import { ENVELOPE_DEPTH, ENVELOPE_PARTS } from '../../core/limits.ts';
import { toGraphQLError } from '../execute/mask.ts';
import { VariablesText, type GivenVariables } from '../variables.ts';
import type { HttpRequest, HttpResponse } from '../../web/request.ts';

/** The paths of the GraphQL endpoints, without the base path. */
export const GRAPHQL_PATH = '/graphql';
export const STREAM_PATH = `${GRAPHQL_PATH}/stream`;

/** The parameters of a GraphQL request, whose types have been checked. */
export type GraphqlParams = {
  readonly query: string;
  readonly operationName?: string | null | undefined;
  readonly variables?: GivenVariables;
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
};

/** Throws the refusal of a body that is not JSON or is nested too deeply. */
type RefuseBody = (fault: JsonFault) => never;

/**
 * Checks the body of a POST and splits it into its members, in one pass. `variables` stays JSON text if it is an
 * object. Returns an empty list for any list, and null for any other value that is not an object. Throws
 * `invalid_argument`, or the error of `refuse`.
 */
function readRequestBody(text: string, refuse: RefuseBody): unknown {
  const members = readMembers(text, ENVELOPE_PARTS, ENVELOPE_DEPTH);
  if (members === null) return isArrayText(trustJson(text)) ? [] : null;
  if (members === 'members') return invalid('body', `at most ${ENVELOPE_PARTS} members are read`);
  if (typeof members === 'string') return refuse(members);
  return {
    query: valueOf('query', members.get('query')),
    // Some clients send an empty operation name to mean none.
    operationName: valueOf('operationName', members.get('operationName')) || null,
    variables: variablesOf(members.get('variables')),
    extensions: valueOf('extensions', members.get('extensions')),
  };
}

function variablesOf(json: JsonText | undefined): unknown {
  return json && isObjectText(json) ? new VariablesText(json) : valueOf('variables', json);
}

function valueOf(name: string, json: JsonText | undefined): unknown {
  if (json === undefined) return undefined;
  const read = readShaped(json, 'plain', ENVELOPE_PARTS);
  return typeof read === 'string' ? invalid(name, shapeFaultText(read, ENVELOPE_PARTS)) : read.value;
}

/**
 * Reads the parameters of a request: for a POST from `body`, as `readRequestBody` returned it, and for a GET from its
 * URL. Throws `invalid_argument`.
 */
export function readParams(req: HttpRequest, body: unknown): GraphqlParams {
  return checkParams(req.method === 'GET' ? urlParams(req) : body);
}

/**
 * Refuses a request that names a document only by its hash (automatic persisted queries). Clients recognize this
 * message and send the document instead.
 */
class PersistedQueryNotSupported extends CallboardError {
  constructor() {
    super('persisted_query_not_supported', 'PersistedQueryNotSupported');
  }
}

function asksPersistedQuery(query: unknown, extensions: unknown): boolean {
  return isAbsent(query) && isRecord(extensions) && isRecord(extensions['persistedQuery']);
}

function checkParams(value: unknown): GraphqlParams {
  if (Array.isArray(value)) invalid('body', 'batching is not supported');
  if (!isRecord(value)) invalid('body', 'expected a JSON object');
  const { query, operationName, variables, extensions } = value;
  if (asksPersistedQuery(query, extensions)) throw new PersistedQueryNotSupported();
  if (typeof query !== 'string' || query === '') invalid('query', 'expected the text of a document');
  if (!isAbsent(operationName) && typeof operationName !== 'string') invalid('operationName', 'expected a text');
  if (!isAbsent(variables) && !isRecord(variables)) invalid('variables', 'expected an object');
  if (!isAbsent(extensions) && !isRecord(extensions)) invalid('extensions', 'expected an object');
  return { query, operationName, variables, extensions };
}

function urlParams(req: HttpRequest): Record<string, unknown> {
  const search = searchOf(req);
  const json = (name: string): JsonText | undefined => {
    const text = search.get(name);
    if (text === null || text === '') return undefined;
    return jsonFault(text, ENVELOPE_DEPTH) === null ? trustJson(text) : invalid(name, 'expected JSON');
  };
  return {
    query: search.get('query'),
    operationName: search.get('operationName') || null,
    variables: variablesOf(json('variables')),
    extensions: valueOf('extensions', json('extensions')),
  };
}

export function pathOf(req: HttpRequest): string {
  return (req.url ?? '').split('?', 1)[0] ?? '';
}

export function searchOf(req: HttpRequest): URLSearchParams {
  const url = req.url ?? '';
  const at = url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
}

/** Returns the `accept` header. A missing or empty one accepts everything. */
function acceptOf({ headers: { accept } }: HttpRequest): string {
  return accept?.trim() || '*/*';
}

/** Returns the media types of the `accept` header in their order, in lower case and without parameters. */
export function acceptedTypes(req: HttpRequest): readonly string[] {
  return acceptOf(req)
    .split(',')
    .map((type) => type.split(';', 1)[0]?.trim().toLowerCase() ?? '');
}

const JSON_TYPES = new Set(['application/graphql-response+json', 'application/json', 'application/*', '*/*']);
const NOT_WANTED = /;\s*q=0(\.0*)?\s*(;|$)/i;

/** Whether any media type in the `accept` header permits JSON with a weight other than 0. */
export function acceptsJson(req: HttpRequest): boolean {
  const texts = acceptOf(req).split(',');
  return acceptedTypes(req).some((type, at) => JSON_TYPES.has(type) && !NOT_WANTED.test(texts[at] ?? ''));
}

const ANSWER_TYPES = new Set([
  'application/graphql-response+json',
  'application/json',
  'multipart/mixed',
  'text/event-stream',
]);
const ANY_TYPE = new Set(['*/*', 'application/*', 'multipart/*', 'text/*']);

/** Throws `not_acceptable` unless the `accept` header permits a media type of answers, in UTF-8. */
export function requireAnswerType(req: HttpRequest): void {
  for (const text of acceptOf(req).toLowerCase().replace(/\s/g, '').split(',')) {
    const [type = '', ...parameters] = text.split(';');
    const charset = parameters.find((parameter) => parameter.startsWith('charset='));
    if ((ANSWER_TYPES.has(type) || ANY_TYPE.has(type)) && (charset ?? 'charset=utf-8') === 'charset=utf-8') return;
  }
  throw new CallboardError('not_acceptable', 'GraphQL answers application/graphql-response+json or application/json.');
}

/**
 * Answers a whole request with one error, in GraphQL's response format. Destroys the response if its headers were
 * already sent.
 */
export function sendError(res: HttpResponse, error: CallboardError): void {
  if (res.headersSent) return void res.destroy();
  const { message, extensions } = toGraphQLError(error);
  const { http: _http, ...shown } = extensions;
  const persisted = error instanceof PersistedQueryNotSupported;
  const body = JSON.stringify({ errors: [{ message, extensions: shown }] });
  const spec = acceptedTypes(res.req).includes('application/graphql-response+json');
  const { retryAfterMs } = error.details;
  // Clients of persisted queries read this error only from a response with status 200, unless the media type is
  // GraphQL's own.
  res.writeHead(persisted && !spec ? 200 : error.status, {
    'content-type': `application/${spec ? 'graphql-response+json' : 'json'}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    ...(error.status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(retryAfterMs !== undefined && { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }),
  });
  res.end(body);
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

// Reads bodies of GraphQL requests, with a cache for bodies with equal bytes.

/**
 * The maximum number of cached bodies, and the maximum bytes of one. Dashboards send the same few bodies again and
 * again.
 */
const BODIES = { most: 500, longest: 4096 };

/**
 * Creates a function that reads a request body as `readRequestBody` does, and throws the errors of `decode` and
 * `refuse`. It caches short bodies, because reading one is a sixth of the cost of a small query.
 */
export function createBodyReader(decode: (bytes: Buffer) => string, refuse: RefuseBody): (bytes: Buffer) => unknown {
  const bodies = new BoundedMap<string, object>({ most: BODIES.most, order: 'used' });
  return (bytes) => {
    if (bytes.length > BODIES.longest) return readRequestBody(decode(bytes), refuse);
    const text = bytes.toString('latin1');
    const known = bodies.get(text);
    if (known) return known;
    const body = readRequestBody(decode(bytes), refuse);
    if (typeof body === 'object' && body !== null) bodies.set(text, Object.freeze(body));
    return body;
  };
}
