/**
 * Sends an operator's requests to the relay: over REST if a route answers administrators and users alike, and over
 * GraphQL otherwise.
 */
import type { TypedDocumentString } from '../../generated/cli.ts';
import type { Clock } from '../clients/link/platform.ts';
import type { ProgressSink } from '../clients/link/progress.ts';
import type { HttpAnswer } from '../clients/link/library-error.ts';
import { requestRelay, trimUrl } from '../clients/link/request-with-retries.ts';
import { OperatorFailure, exitOfCode, exitOfProblem, EXIT } from './exit-codes.ts';
import { readSettings, type RelayFlags, type RelaySettings } from './relay-settings.ts';
import { withWords, withNames } from './enum-words.ts';

/** The parameters of a REST route. Undefined parameters are not sent. */
export type RelayQuery = Readonly<Record<string, string | undefined>>;

type RelayCall = {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly body?: object;
  readonly query?: RelayQuery;
  /** The time limit of the whole request, in milliseconds. */
  readonly budgetMs?: number;
  /** Whether the request may be sent again if its connection breaks. Default true. */
  readonly repeatable?: boolean;
  readonly signal?: AbortSignal;
  /** Receives the progress of the call that the request makes or awaits. */
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

/** The default time limit of a request with its retries, in milliseconds. */
const BUDGET_MS = 10_000;
/** The time limit until a response begins, in milliseconds. It is longer than a call waits for its end. */
const HEAD_MS = 120_000;

/** How many times a request is repeated that is safe to repeat. */
const RETRIES = 2;

/**
 * Opens the relay that flags, environment variables or a context select. The settings are read, and requests are sent,
 * only when needed.
 */
export function openRelay(
  flags: RelayFlags,
  { env, clock }: { readonly env: Readonly<Record<string, string | undefined>>; readonly clock: Clock },
) {
  let known: Promise<RelaySettings> | undefined;
  const settings = (): Promise<RelaySettings> => (known ??= readSettings(flags, env));

  const send = withinTime(clock);

  /** Sends a request and returns the response, whatever its status. Throws OperatorFailure if there is no response. */
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
    /**
     * Sends a request to a REST route and returns the body of the response. Throws OperatorFailure if it is a problem
     * document.
     */
    read: async (path: string, call?: RelayCall) => bodyOf(await request(path, call)),
    /** Runs a query or a mutation. Enum values in variables and data are the words of REST. Throws OperatorFailure. */
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
 * Creates a `fetch` whose response must begin within HEAD_MS. It does not follow redirects, because another host must
 * not get the request; it returns the redirect itself.
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

/** Returns the body of a response. Throws OperatorFailure if it is a problem document, or not from a relay. */
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
 * Returns the data of a GraphQL response. Its type is not checked, because the relay validated the operation against
 * the schema from which the type was generated.
 */
function dataOf<Data>(answer: HttpAnswer): Data {
  throwErrors(answer.body);
  const { data } = bodyOf(answer);
  return data as Data;
}

/** Throws the first error in a GraphQL response, if there is one. */
export function throwErrors({ errors }: Readonly<Record<string, unknown>>): void {
  const [first]: unknown[] = Array.isArray(errors) ? errors : [];
  if (typeof first !== 'object' || first === null) return;
  const { message, extensions } = first as { message?: unknown; extensions?: { code?: unknown } };
  const code = typeof extensions?.code === 'string' ? extensions.code : 'bad_answer';
  throw new OperatorFailure(exitOfCode(code), code, typeof message === 'string' ? message : code);
}

/** Joins path segments. Each is percent-encoded. */
export function pathOf(...segments: readonly string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join('');
}

function queryOf(query: RelayQuery): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
