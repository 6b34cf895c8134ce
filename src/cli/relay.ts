/**
 * The relay that an operator's command talks to: sends requests to it, over REST where a route answers administrators and
 * users alike, otherwise over GraphQL.
 */
import type { TypedDocumentString } from '../../generated/cli.ts';
import type { Clock } from '../clients/link/platform.ts';
import type { ProgressSink } from '../clients/link/progress.ts';
import type { HttpAnswer } from '../clients/link/library-error.ts';
import { requestRelay, trimUrl } from '../clients/link/request-with-retries.ts';
import { OperatorFailure, exitOfCode, exitOfProblem, EXIT } from './exit-codes.ts';
import { readSettings, type RelayFlags, type RelaySettings } from './relay-settings.ts';
import { withWords, withNames } from './rest-words.ts';

/** The parameters of a REST route. Those that are undefined are not sent. */
export type RelayQuery = Readonly<Record<string, string | undefined>>;

type RelayCall = {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly body?: object;
  readonly query?: RelayQuery;
  /** How long the relay may take to answer, in milliseconds. */
  readonly budgetMs?: number;
  /** Whether a request whose connection breaks may be sent again. Default true. */
  readonly repeatable?: boolean;
  readonly signal?: AbortSignal;
  /** Receives the progress of the call that the request invokes or awaits. */
  readonly onProgress?: ProgressSink | undefined;
};

/** The request of a GraphQL operation, ready to be sent. */
export type SentOperation = {
  readonly name: string;
  readonly url: string;
  readonly query: string;
  readonly variables: object;
  readonly token: () => Promise<string>;
};

export type OperatorRelay = ReturnType<typeof openRelay>;

/** The default limit for one answer with its retries, in milliseconds. */
const BUDGET_MS = 10_000;
/** How long the relay may take to begin an answer, in milliseconds; longer than a call waits for its end. */
const HEAD_MS = 120_000;

/** The number of retries of a request that is safe to repeat. */
const RETRIES = 2;

/**
 * Opens the relay that the flags, the environment or a context select. Reads no settings and sends nothing before they
 * are needed.
 */
export function openRelay(
  flags: RelayFlags,
  { env, clock }: { readonly env: Readonly<Record<string, string | undefined>>; readonly clock: Clock },
) {
  let known: Promise<RelaySettings> | undefined;
  const settings = (): Promise<RelaySettings> => (known ??= readSettings(flags, env));

  const send = withinTime(clock);

  /** Requests a route and returns its answer, whatever its status. Throws OperatorFailure if there is no answer. */
  async function request(path: string, call: RelayCall = {}): Promise<HttpAnswer> {
    const { url, token } = await settings();
    const retries = call.repeatable === false ? 0 : RETRIES;
    return requestRelay(
      { url, token, retries, clock, fetch: send },
      {
        method: call.method ?? 'GET',
        path: path + queryOf(call.query ?? {}),
        budgetMs: call.budgetMs ?? BUDGET_MS,
        onProgress: call.onProgress,
        ...(call.body && { body: JSON.stringify(call.body) }),
        ...(call.signal && { signal: call.signal }),
        fault: (code, message, { cause }) =>
          cause instanceof OperatorFailure
            ? cause
            : new OperatorFailure(EXIT.unreachable, code, `${URL.parse(url)?.origin ?? url}: ${message}`),
      },
    );
  }

  return {
    settings,
    request,
    /** Requests a REST route and returns the body of the answer. Throws OperatorFailure for a problem document. */
    read: async (path: string, call?: RelayCall) => bodyOf(await request(path, call)),
    /** Runs a query or a mutation, with the words of REST in place of GraphQL's enum names. Throws OperatorFailure. */
    async query<Data, Variables extends object>(
      document: TypedDocumentString<Data, Variables>,
      variables: Variables,
      call?: Pick<RelayCall, 'repeatable' | 'signal'>,
    ): Promise<Data> {
      const { name, body } = operationOf(document, variables);
      return withWords(name, dataOf(await request('/graphql', { method: 'POST', body, ...call })));
    },
    /** Builds the request of a subscription. */
    async prepare<Data, Variables extends object>(
      document: TypedDocumentString<Data, Variables>,
      variables: Variables,
    ): Promise<SentOperation> {
      const { url, token } = await settings();
      const { name, body } = operationOf(document, variables);
      return { name, url: `${trimUrl(url)}/graphql/stream`, ...body, token };
    },
  };
}

/**
 * Returns a `fetch` whose answer must begin within HEAD_MS, and which follows no redirect: another host must not get what
 * is meant for the relay. The answer to a redirect is returned as it is.
 */
export function withinTime(clock: Clock): typeof globalThis.fetch {
  return async (input, init) => {
    const late = new AbortController();
    const stop = clock.after(HEAD_MS, () => late.abort(new Error(`no answer within ${HEAD_MS / 1000} seconds`)));
    const signal = AbortSignal.any([late.signal, ...(init?.signal ? [init.signal] : [])]);
    try {
      return await fetch(input, { ...init, signal, redirect: 'manual' });
    } finally {
      stop();
    }
  };
}

function operationOf<Data, Variables extends object>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
): { readonly name: string; readonly body: { readonly query: string; readonly variables: object } } {
  const query = document.toString();
  const [, name = ''] = /^\s*(?:query|mutation|subscription) (\w+)/.exec(query) ?? [];
  return { name, body: { query, variables: withNames(name, variables) } };
}

/** Returns the body of an answer. Throws OperatorFailure for a problem document or an answer that no relay gives. */
export function bodyOf({ status, body }: HttpAnswer): HttpAnswer['body'] {
  if (status < 300 && Object.keys(body).length > 0) return body;
  const { code, detail } = body;
  if (typeof code !== 'string') {
    const redirect =
      status >= 300 && status < 400 ? ': a redirect, which is not followed. Name the address itself' : '';
    throw badAnswer(`HTTP ${status} without an answer of a relay${redirect}.`);
  }
  throw new OperatorFailure(exitOfProblem(status, code), code, typeof detail === 'string' ? detail : code, body);
}

export function badAnswer(message: string): OperatorFailure {
  return new OperatorFailure(EXIT.unreachable, 'bad_answer', message);
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

function queryOf(query: RelayQuery): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
