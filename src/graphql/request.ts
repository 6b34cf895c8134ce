import type { IncomingMessage, ServerResponse } from 'node:http';
import { CallboardError, invalid } from '../core/errors.ts';
import { toGraphQLError } from './mask.ts';
import type { Variables } from './plan.ts';

/** The parameters of a GraphQL request, their types checked. */
export type Params = {
  readonly query: string;
  readonly operationName?: string | null | undefined;
  readonly variables?: Variables | null | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
};

/** Of a JSON body, or of the URL of a GET. Throws `invalid_argument`. */
export function readParams(req: IncomingMessage, body: unknown): Params {
  return checkParams(req.method === 'GET' ? urlParams(req) : body);
}

export function checkParams(value: unknown): Params {
  if (Array.isArray(value)) invalid('body', 'batching is not supported');
  if (!isRecord(value)) invalid('body', 'expected a JSON object');
  const { query, operationName, variables, extensions } = value;
  if (typeof query !== 'string' || query === '') invalid('query', 'expected the text of a document');
  if (!isAbsent(operationName) && typeof operationName !== 'string') invalid('operationName', 'expected a text');
  if (!isAbsent(variables) && !isRecord(variables)) invalid('variables', 'expected an object');
  if (!isAbsent(extensions) && !isRecord(extensions)) invalid('extensions', 'expected an object');
  return { query, operationName, variables, extensions };
}

function urlParams(req: IncomingMessage): Record<string, unknown> {
  const search = searchOf(req);
  const json = (name: string): unknown => {
    const text = search.get(name);
    if (text === null || text === '') return null;
    try {
      return JSON.parse(text);
    } catch {
      return invalid(name, 'expected JSON');
    }
  };
  return {
    query: search.get('query'),
    operationName: search.get('operationName') || null,
    variables: json('variables'),
    extensions: json('extensions'),
  };
}

export function pathOf(req: IncomingMessage): string {
  return (req.url ?? '').split('?', 1)[0] ?? '';
}

export function searchOf(req: IncomingMessage): URLSearchParams {
  const url = req.url ?? '';
  const at = url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
}

/** The media types that the asker takes, in the order given, without parameters. */
export function acceptedTypes(req: IncomingMessage): readonly string[] {
  return (req.headers.accept ?? '*/*').split(',').map((type) => type.split(';', 1)[0]?.trim().toLowerCase() ?? '');
}

/** Answers a whole request with one error, in the response form of GraphQL. */
export function sendError(res: ServerResponse, error: CallboardError): void {
  if (res.headersSent) return void res.destroy();
  const { message, extensions } = toGraphQLError(error);
  const { http: _http, ...shown } = extensions;
  const body = JSON.stringify({ errors: [{ message, extensions: shown }] });
  const spec = acceptedTypes(res.req).includes('application/graphql-response+json');
  const { retryAfterMs } = error.details;
  res.writeHead(error.status, {
    'content-type': `application/${spec ? 'graphql-response+json' : 'json'}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    ...(error.status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(retryAfterMs !== undefined && { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }),
  });
  res.end(body);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
