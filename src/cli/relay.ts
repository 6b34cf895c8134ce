/**
 * Sends operators' requests to the relay: over REST where it answers everyone who may ask, otherwise over GraphQL. Also
 * follows subscriptions, and translates between GraphQL's enum names and the words of REST.
 */
import { ENUM_PLACES, ENUM_WORDS } from '../../generated/cli-enums.ts';
import type { TypedDocumentString } from '../../generated/cli.ts';
import { BACKOFF_BASE_MS, BACKOFF_CAP_MS, backoffMs, sleep, type Clock } from '../clients/link/platform.ts';
import { requestRelay, trimUrl, type HttpAnswer, type ProgressSink } from '../clients/link/relay-request.ts';
import type { StreamAnswer } from '../clients/live/stream.ts';
import { parseObject } from '../protocol/json.ts';
import { readSettings, type RelayFlags, type RelaySettings } from './contexts.ts';
import { OperatorFailure, exitOfCode, exitOfProblem, usageFailure, EXIT } from './io.ts';

/** The parameters of a REST route. Those that are undefined are not sent. */
export type RelayQuery = Readonly<Record<string, string | undefined>>;

type RelayCall = {
  readonly method?: 'GET' | 'POST';
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
type SentOperation = {
  readonly name: string;
  readonly url: string;
  readonly query: string;
  readonly variables: object;
  readonly token: () => Promise<string>;
};

export type OperatorRelay = ReturnType<typeof openRelay>;

/** The default limit for one answer with its retries, in milliseconds. */
const BUDGET_MS = 10_000;
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

  /** Requests a route and returns its answer, whatever its status. Throws OperatorFailure if there is no answer. */
  async function request(path: string, call: RelayCall = {}): Promise<HttpAnswer> {
    const { url, token } = await settings();
    const retries = call.repeatable === false ? 0 : RETRIES;
    return requestRelay(
      { url, token, retries, clock },
      {
        method: call.method ?? 'GET',
        path: path + queryOf(call.query ?? {}),
        budgetMs: call.budgetMs ?? BUDGET_MS,
        onProgress: call.onProgress,
        ...(call.body && { body: call.body }),
        ...(call.signal && { signal: call.signal }),
        fault: (code, message, cause) =>
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
  if (typeof code !== 'string') throw badAnswer(`HTTP ${status} without an answer of a relay.`);
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
function throwErrors({ errors }: Readonly<Record<string, unknown>>): void {
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

// Follows a subscription of the relay over server-sent events, and reconnects when the stream breaks.

/** The codes of errors after which the same request may succeed later. */
const PASSING: readonly string[] = ['unreachable', 'bad_answer', 'store_unavailable', 'draining', 'rate_limited'];

type Following<Data> = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onData: (data: Data) => void;
  /** Called when an open stream breaks. Events may be missing until it is open again. */
  readonly onGap: () => void;
};

/**
 * Passes the data of each event to `onData`. Rejects with the signal's reason when the signal is aborted. Rejects with
 * OperatorFailure when the relay refuses the subscription, and when the relay cannot be reached before the stream has
 * been open once.
 */
export async function followStream<Data>(operation: SentOperation, following: Following<Data>): Promise<never> {
  const { clock, signal, onGap } = following;
  let opened = false;
  for (let attempt = 0; ; attempt++) {
    const fault = await readStream(operation, following, () => {
      opened = true;
      attempt = 0;
    }).catch((error: unknown) => error);
    signal.throwIfAborted();
    if (fault instanceof Error && !(opened && isPassing(fault))) throw fault;
    if (attempt === 0) onGap();
    const bounds = { baseMs: BACKOFF_BASE_MS, capMs: BACKOFF_CAP_MS, random: Math.random };
    await sleep(clock, backoffMs(attempt, bounds), signal);
  }
}

function isPassing(fault: Error): boolean {
  return fault instanceof OperatorFailure && PASSING.includes(fault.code);
}

/** Reads one stream. Resolves when the relay has completed it. */
async function readStream<Data>(
  { name, token, ...operation }: SentOperation,
  { signal, onData }: Following<Data>,
  onOpen: () => void,
): Promise<void> {
  // Loaded here, because only the verbs that follow something need it.
  const { runStream, StreamFailure } = await import('../clients/live/stream.ts');
  let opened = false;
  try {
    await runStream({
      ...{ ...operation, token: await token(), signal },
      onOpen() {
        opened = true;
        onOpen();
      },
      onResult(result) {
        throwErrors(result);
        onData(withWords(name, result['data'] as Data));
      },
    });
  } catch (error) {
    if (!(error instanceof StreamFailure)) throw error;
    if (error.answer) throwAnswer(error.answer);
    const origin = URL.parse(operation.url)?.origin ?? operation.url;
    const message = opened ? 'The stream broke.' : `${origin}: The relay could not be reached.`;
    throw new OperatorFailure(EXIT.unreachable, 'unreachable', message);
  }
}

/** Throws the refusal in an answer that is no stream. */
function throwAnswer({ status, text }: StreamAnswer): never {
  const body = parseObject(text) ?? {};
  throwErrors(body);
  bodyOf({ status, body, retryAfterMs: null });
  throw badAnswer(`HTTP ${status} without a stream.`);
}

// Translates between the names of GraphQL's enum values and the words that REST writes for them. The command line shows
// the words.

type Words = typeof ENUM_WORDS;
type EnumName = keyof Words;
/** A word of this enum in REST, such as `outcome_unknown` of `Outcome`. */
type WordOf<Name extends EnumName> = Words[Name][keyof Words[Name]] & string;

/** Returns all words of an enum. */
export function wordsOf(name: EnumName): readonly string[] {
  return Object.values(ENUM_WORDS[name]);
}

/** Returns the text if it is a word of the enum; undefined without a text. Throws a usage failure for another text. */
export function readWord<Name extends EnumName>(name: Name, text: string): WordOf<Name>;
export function readWord<Name extends EnumName>(name: Name, text: string | undefined): WordOf<Name> | undefined;
export function readWord<Name extends EnumName>(name: Name, text: string | undefined): WordOf<Name> | undefined {
  if (text === undefined || isWord(name, text)) return text;
  throw usageFailure(`expected ${wordsOf(name).join(', ')}, got "${text}"`);
}

function isWord<Name extends EnumName>(name: Name, text: string): text is WordOf<Name> {
  return wordsOf(name).includes(text);
}

type WordTable = Readonly<Record<string, string>>;
const WORDS: Readonly<Record<string, WordTable>> = ENUM_WORDS;

/** Returns the variables of an operation with GraphQL's enum names in place of the words of REST. */
function withNames(operation: string, variables: object): object {
  const namesOf = (words: WordTable): WordTable =>
    Object.fromEntries(Object.entries(words).map(([name, word]) => [word, name]));
  return translate({ ...variables }, ENUM_PLACES[operation]?.variables, namesOf);
}

/** Returns the data with the words of REST in place of GraphQL's enum names. Changes the given object. */
function withWords<Data>(operation: string, data: Data): Data {
  return translate(data, ENUM_PLACES[operation]?.data, (words) => words);
}

/**
 * Replaces the enum values at these places in `value`, and returns it. `places` has the name of the enum at each place,
 * and `tableOf` makes the table of replacements from the words of that enum.
 */
function translate<Value>(value: Value, places: WordTable = {}, tableOf: (words: WordTable) => WordTable): Value {
  for (const [place, name] of Object.entries(places)) replaceAt(value, place.split('.'), tableOf(WORDS[name] ?? {}));
  return value;
}

function replaceAt(node: unknown, [name = '', ...rest]: readonly string[], table: WordTable): void {
  if (Array.isArray(node)) return node.forEach((item) => replaceAt(item, [name, ...rest], table));
  if (!isObject(node)) return;
  if (rest.length > 0) replaceAt(node[name], rest, table);
  else if (name in node) node[name] = translated(node[name], table);
}

function translated(value: unknown, table: WordTable): unknown {
  if (Array.isArray(value)) return value.map((item) => translated(item, table));
  return typeof value === 'string' ? (table[value] ?? value) : value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
