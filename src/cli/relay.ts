/**
 * The relay that an operator's command talks to. Decides which one it is, and where its token comes from: flags,
 * environment or the file of contexts, which it reads and writes. Sends requests to it: over REST where it answers
 * everyone who may ask, otherwise over GraphQL. Also follows subscriptions, and translates between GraphQL's enum
 * names and the words of REST.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ENUM_PLACES, ENUM_WORDS } from '../../generated/cli-enums.ts';
import type { TypedDocumentString } from '../../generated/cli.ts';
import { BACKOFF_BASE_MS, BACKOFF_CAP_MS, backoffMs, sleep, type Clock } from '../clients/link/platform.ts';
import { requestRelay, trimUrl, type HttpAnswer, type ProgressSink } from '../clients/link/relay-request.ts';
import type { StreamAnswer } from '../clients/live/stream.ts';
import { parseObject, isRecord } from '../protocol/json.ts';
import { OperatorFailure, exitOfCode, exitOfProblem, homeOf, usageFailure, EXIT, isHttpUrl } from './io.ts';

/** The parameters of a REST route. Those that are undefined are not sent. */
export type RelayQuery = Readonly<Record<string, string | undefined>>;

type RelayCall = {
  readonly method?: 'GET' | 'POST' | 'DELETE';
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
/** How long the relay may take to begin an answer, in milliseconds; longer than a call waits for its end. */
const HEAD_MS = 120_000;
/** How long a stream may be silent, in milliseconds. The relay sends a comment every 20 seconds. */
const SILENT_MS = 60_000;
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
  { clock, signal, onData }: Following<Data>,
  onOpen: () => void,
): Promise<void> {
  // Loaded here, because only the verbs that follow something need it.
  const { runStream, StreamFailure } = await import('../clients/live/stream.ts');
  let opened = false;
  const silence = new AbortController();
  const listen = (): (() => void) => clock.after(SILENT_MS, () => silence.abort(SILENT));
  let stop = listen();
  try {
    await runStream({
      ...{ ...operation, token: await token(), signal: AbortSignal.any([signal, silence.signal]) },
      fetch: withinTime(clock),
      onBytes() {
        stop();
        stop = listen();
      },
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
  } finally {
    stop();
  }
}

const SILENT = new OperatorFailure(EXIT.unreachable, 'unreachable', 'The relay is silent.');

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

// Which relay, and where its token comes from.

export type RelayFlags = Readonly<Record<string, string | undefined>>;
type Env = Readonly<Record<string, string | undefined>>;

export type RelaySettings = {
  /** The base address of the relay. */
  readonly url: string;
  /** What named the address, as a text for people: a flag, a variable, a context or the default. */
  readonly urlFrom: string;
  /** Reads the token from its source. Rejects with OperatorFailure if there is none. */
  readonly token: () => Promise<string>;
  /** A description of where the token comes from, for people. Null: nothing names a source. */
  readonly tokenFrom: string | null;
  /** Whether reading the token runs a command, which may ask a person for a passphrase. */
  readonly runsCommand: boolean;
};

const DEFAULT_URL = 'http://127.0.0.1:4400';

/**
 * Reads the flags `context`, `url`, `tokenFile` and `tokenCommand`, the variables CALLBOARD_CONTEXT, CALLBOARD_URL and
 * CALLBOARD_TOKEN, and the file of contexts. The token of a context is sent to the relay of that context only. No flag
 * holds a token, since other users of the machine can read arguments. Throws OperatorFailure for settings that do not
 * fit together.
 */
export async function readSettings(flags: RelayFlags, env: Env): Promise<RelaySettings> {
  if (flags['context'] !== undefined && flags['url'] !== undefined)
    throw usageFailure('--context and --url: only one can name the relay');
  const named = flags['context'] === undefined ? namedUrl(flags, env) : null;
  const context = named ? null : await contextOf(flags, env);
  const { url, from: urlFrom } = named ?? context ?? { url: DEFAULT_URL, from: 'default' };
  if (!isHttpUrl(url)) throw usageFailure('--url: expected an http or https address');
  const source = tokenSource(flags, env, context);
  return {
    ...{ url, urlFrom, token: source?.give ?? noToken },
    ...{ tokenFrom: source?.from ?? null, runsCommand: source?.runsCommand ?? false },
  };
}

type Named = { readonly url: string; readonly from: string };
type NamedContext = Named & { readonly context: RelayContext; readonly byFlag: boolean };
type Source = { readonly give: () => Promise<string>; readonly from: string; readonly runsCommand?: true };

function namedUrl(flags: RelayFlags, env: Env): Named | null {
  if (flags['url'] !== undefined) return { url: flags['url'], from: '--url' };
  const url = env['CALLBOARD_URL'] ?? '';
  return url === '' ? null : { url, from: 'CALLBOARD_URL' };
}

async function contextOf(flags: RelayFlags, env: Env): Promise<NamedContext | null> {
  const wanted = flags['context'] ?? (env['CALLBOARD_CONTEXT'] || undefined);
  const file = await readContexts(env);
  const name = wanted ?? file.current;
  if (name === null) return null;
  const context = contextNamed(file, name);
  return { url: context.url, from: `context ${name}`, context, byFlag: flags['context'] !== undefined };
}

/** Returns the context with this name. Throws OperatorFailure if there is none. */
export function contextNamed({ contexts }: ContextsFile, name: string): RelayContext {
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (!context) throw usageFailure(`there is no context "${name}"; callboard context ls lists them`);
  return context;
}

/**
 * Returns the source of the token: a flag for the token, then CALLBOARD_TOKEN, then the context. A context that a flag
 * names goes before CALLBOARD_TOKEN, which may belong to another relay.
 */
function tokenSource(flags: RelayFlags, env: Env, context: NamedContext | null): Source | null {
  const { tokenCommand, tokenFile } = flags;
  if (tokenCommand !== undefined)
    return { give: () => printedBy(tokenCommand), from: '--token-command', runsCommand: true };
  if (tokenFile !== undefined) return { give: () => contentOf(tokenFile), from: '--token-file' };
  const ofContext = context && sourceOfContext(context);
  const token = env['CALLBOARD_TOKEN'] ?? '';
  const ofEnv = token === '' ? null : { give: async () => token, from: 'CALLBOARD_TOKEN' };
  return context?.byFlag ? (ofContext ?? ofEnv) : (ofEnv ?? ofContext);
}

function sourceOfContext({ from, context }: NamedContext): Source | null {
  const { token_command, token_file, token } = context;
  if (token_command !== undefined)
    return { give: () => printedBy(token_command), from: `the command of ${from}`, runsCommand: true };
  if (token_file !== undefined) return { give: () => contentOf(token_file), from: `the file of ${from}` };
  return token === undefined ? null : { give: async () => token, from };
}

async function noToken(): Promise<string> {
  throw new OperatorFailure(
    EXIT.notAllowed,
    'unauthenticated',
    'There is no token: set CALLBOARD_TOKEN, give --token-file or --token-command, or use a context that has one.',
  );
}

/** Returns what the token command printed. Errors do not repeat its output, since it may hold a secret. */
async function printedBy(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command]).catch((error: { code?: unknown }) => {
    throw noTokenFrom(`The token command ended with ${String(error.code)}.`);
  });
  return present(stdout, 'The token command printed nothing.');
}

async function contentOf(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => {
    throw noTokenFrom(`The token file ${file} cannot be read.`);
  });
  return present(text, `The token file ${file} is empty.`);
}

function present(text: string, otherwise: string): string {
  if (text.trim() === '') throw noTokenFrom(otherwise);
  return text.trim();
}

function noTokenFrom(message: string): OperatorFailure {
  return new OperatorFailure(EXIT.notAllowed, 'unauthenticated', message);
}

// Reads and writes the file of an operator's contexts. A context names a relay and the source of the token for it.

/** One context: a relay, and at most one source of its token. */
export type RelayContext = {
  readonly url: string;
  readonly token_command?: string;
  readonly token_file?: string;
  /** The token itself. Present only if the operator asked to store it. */
  readonly token?: string;
};

export type ContextsFile = {
  readonly current: string | null;
  /** The context that was current before; null if there was none. */
  readonly previous: string | null;
  readonly contexts: Readonly<Record<string, RelayContext>>;
};

const OWNER_ONLY = 0o600;
const FOLDER_OF_OWNER = 0o700;
const OTHERS = 0o077;
const NONE: ContextsFile = { current: null, previous: null, contexts: {} };

/**
 * Returns the path of the contexts file: `$XDG_CONFIG_HOME/callboard/contexts.json`, by default below `~/.config`. Null:
 * the user has no home directory.
 */
export function contextsPath(env: Env): string | null {
  const home = homeOf(env);
  const folder = env['XDG_CONFIG_HOME'] || (home === null ? null : join(home, '.config'));
  return folder === null ? null : join(folder, 'callboard', 'contexts.json');
}

/**
 * Reads the contexts; there are none if the file does not exist. Throws OperatorFailure for a file that cannot be read
 * or holds something else, and for a file that holds a token and that other users may read.
 */
export async function readContexts(env: Env): Promise<ContextsFile> {
  const path = contextsPath(env);
  if (path === null) return NONE;
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw faulty(path, `cannot be read (${error.code ?? error.message})`);
  });
  if (text === null) return NONE;
  const file = parsed(text);
  if (file === null) throw faulty(path, 'does not hold contexts');
  const holdsToken = Object.values(file.contexts).some(({ token }) => token !== undefined);
  if (holdsToken && ((await stat(path)).mode & OTHERS) !== 0)
    throw faulty(path, `holds a token and others may read it; run: chmod 600 ${path}`);
  return file;
}

/** Writes the contexts to a file that only its owner may read. A concurrent reader sees the old file or the new one. */
export async function writeContexts(env: Env, file: ContextsFile): Promise<void> {
  const path = contextsPath(env);
  if (path === null)
    throw usageFailure('Contexts need a folder: this user has no home directory; set HOME or XDG_CONFIG_HOME.');
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_OF_OWNER });
  const fresh = `${path}.${randomUUID()}`;
  await writeFile(fresh, `${JSON.stringify(file, null, 2)}\n`, { mode: OWNER_ONLY, flag: 'wx' });
  // The umask may have reduced the mode of the new file, so the mode is set exactly.
  await chmod(fresh, OWNER_ONLY);
  await rename(fresh, path);
}

function faulty(path: string, what: string): OperatorFailure {
  return new OperatorFailure(EXIT.usage, 'invalid_contexts', `${path} ${what}`);
}

function parsed(text: string): ContextsFile | null {
  try {
    const value: unknown = JSON.parse(text);
    return isContextsFile(value) ? value : null;
  } catch {
    return null;
  }
}

function isContextsFile(value: unknown): value is ContextsFile {
  if (!isRecord(value) || !isRecord(value['contexts'])) return false;
  const named = [value['current'], value['previous']].every((name) => name === null || typeof name === 'string');
  return named && Object.values(value['contexts']).every(isRelayContext);
}

function isRelayContext(value: unknown): value is RelayContext {
  if (!isRecord(value) || typeof value['url'] !== 'string') return false;
  return ['token_command', 'token_file', 'token'].every((name) => ['string', 'undefined'].includes(typeof value[name]));
}
