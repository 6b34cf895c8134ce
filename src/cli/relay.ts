/** Sends the requests of operators' commands to the relay: REST for calls, GraphQL for everything else. */
import type { TypedDocumentString } from '../../generated/cli.ts';
import type { Clock } from '../../clients/link/clock.ts';
import { requestRelay, trimUrl, type HttpAnswer } from '../../clients/link/relay-request.ts';
import { exitOfCode, exitOfProblem, OPERATOR_EXIT, OperatorFailure } from './failure.ts';
import { readSettings, type RelayFlags, type RelaySettings } from './settings.ts';
import { withNames, withWords } from './wire.ts';

export type RelayCall = {
  readonly method?: 'GET' | 'POST';
  readonly body?: object;
  readonly query?: Readonly<Record<string, string | undefined>>;
  /** How long the relay may take to answer, in milliseconds. */
  readonly budgetMs?: number;
  /** Whether a request whose connection breaks may be sent again. Default true. */
  readonly repeatable?: boolean;
  readonly signal?: AbortSignal;
};

/** The request of a GraphQL operation, ready to be sent. */
export type SentOperation = {
  readonly name: string;
  readonly url: string;
  readonly body: string;
  readonly token: () => Promise<string>;
};

export type OperatorRelay = {
  readonly settings: () => Promise<RelaySettings>;
  /**
   * Requests a REST route and returns its answer, whatever its status. Throws OperatorFailure if there is no answer.
   */
  request(path: string, call?: RelayCall): Promise<HttpAnswer>;
  /** Requests a REST route and returns the body of the answer. Throws OperatorFailure for a problem document. */
  read(path: string, call?: RelayCall): Promise<HttpAnswer['body']>;
  /**
   * Runs a query or a mutation. Variables and data have the words of REST in place of GraphQL's enum names. Throws
   * OperatorFailure.
   */
  query<Data, Variables extends object>(
    document: TypedDocumentString<Data, Variables>,
    variables: Variables,
    call?: Pick<RelayCall, 'repeatable' | 'budgetMs'>,
  ): Promise<Data>;
  /** Builds the request of a subscription. */
  prepare<Data, Variables extends object>(
    document: TypedDocumentString<Data, Variables>,
    variables: Variables,
  ): Promise<SentOperation>;
};

/** The default limit for one answer with its retries, in milliseconds. */
const BUDGET_MS = 10_000;
/** The number of retries of a request that is safe to repeat. */
const RETRIES = 2;

/**
 * Opens the relay that the flags, the environment or a context name. It reads and sends nothing before the first
 * request.
 */
export function openRelay(
  flags: RelayFlags,
  { env, clock }: { readonly env: Readonly<Record<string, string | undefined>>; readonly clock: Clock },
): OperatorRelay {
  let known: Promise<RelaySettings> | undefined;
  const settings = (): Promise<RelaySettings> => (known ??= readSettings(flags, env));
  const request: OperatorRelay['request'] = async (path, call = {}) => send(await settings(), { path, call, clock });
  return {
    settings,
    request,
    read: async (path, call) => bodyOf(await request(path, call)),
    async query(document, variables, call) {
      const { name, body } = operationOf(document, variables);
      return withWords(name, dataOf(await request('/graphql', { method: 'POST', body, ...call })));
    },
    async prepare(document, variables) {
      const { url, token } = await settings();
      const { name, body } = operationOf(document, variables);
      return { name, url: `${trimUrl(url)}/graphql/stream`, body: JSON.stringify(body), token };
    },
  };
}

type Sending = { readonly path: string; readonly call: RelayCall; readonly clock: Clock };

function send({ url, token }: RelaySettings, { path, call, clock }: Sending): Promise<HttpAnswer> {
  const retries = call.repeatable === false ? 0 : RETRIES;
  return requestRelay(
    { url, token, retries, clock },
    {
      method: call.method ?? 'GET',
      path: path + queryOf(call.query ?? {}),
      budgetMs: call.budgetMs ?? BUDGET_MS,
      ...(call.body && { body: call.body }),
      ...(call.signal && { signal: call.signal }),
      fault: (code, message, cause) =>
        cause instanceof OperatorFailure
          ? cause
          : new OperatorFailure(OPERATOR_EXIT.unreachable, code, `${URL.parse(url)?.origin ?? url}: ${message}`),
    },
  );
}

function operationOf<Data, Variables extends object>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
): { readonly name: string; readonly body: { readonly query: string; readonly variables: object } } {
  const query = document.toString();
  const [, name = ''] = /^\s*(?:query|mutation|subscription) (\w+)/.exec(query) ?? [];
  return { name, body: { query, variables: withNames(name, variables) } };
}

/**
 * Returns the body of an answer. Throws OperatorFailure for a problem document, and for an answer that no relay gives.
 */
export function bodyOf({ status, body }: HttpAnswer): HttpAnswer['body'] {
  if (status < 300 && Object.keys(body).length > 0) return body;
  const { code, detail } = body;
  if (typeof code !== 'string')
    throw new OperatorFailure(OPERATOR_EXIT.unreachable, 'bad_answer', `HTTP ${status} without an answer of a relay.`);
  throw new OperatorFailure(exitOfProblem(status, code), code, typeof detail === 'string' ? detail : code, body);
}

/**
 * Returns the data of an answer. It trusts the type, because the relay validated the document against the schema from
 * which the type was generated.
 */
function dataOf<Data>(answer: HttpAnswer): Data {
  throwErrors(answer.body);
  const { data } = bodyOf(answer);
  return data as Data;
}

/** Throws the first error of a GraphQL answer. */
export function throwErrors({ errors }: Readonly<Record<string, unknown>>): void {
  const [first]: unknown[] = Array.isArray(errors) ? errors : [];
  if (typeof first !== 'object' || first === null) return;
  const { message, extensions } = first as { message?: unknown; extensions?: { code?: unknown } };
  const code = typeof extensions?.code === 'string' ? extensions.code : 'bad_answer';
  throw new OperatorFailure(exitOfCode(code), code, typeof message === 'string' ? message : code);
}

/** Joins path segments, each percent-encoded. */
export function pathOf(...segments: readonly string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join('');
}

function queryOf(query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
