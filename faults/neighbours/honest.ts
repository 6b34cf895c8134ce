/**
 * Runs the honest user in a process: one client, callers over HTTP and over a link that make ten calls per second,
 * reads of an operator once per second, and trials of features that need new resources of the relay. While the store is
 * full, the user reads too, and its client has commands in progress. Argument: the site as JSON.
 */
import { randomBytes } from 'node:crypto';
import { get } from 'node:http';
import { z } from 'zod';
import {
  type Caller,
  CallerError,
  createHttpCaller,
  createLinkCaller,
  type InvokeOptions,
} from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { parseDown } from '../../src/protocol/frame-codec.ts';
import { serveActs } from '../lib/acts.ts';
import { type HeldCalls, percentile, type Phase, PHASE_OPTIONS, type Wholeness } from './figures.ts';
import { ADMIN_TOKEN, freshToken, HONEST, linkUrl, NEWCOMER, relayUrl, SITE, type Site } from './site.ts';

/** The number of calls per second of the honest user. */
const CALLS_A_SECOND = 10;
/** One call in this many is large: it has more data than a history row can have. */
const LARGE_EACH = 10;
/** The size of the arguments of large calls, in bytes. */
const LARGE_BYTES = 20 * 1024;
/** The size of the arguments of all other calls, in bytes. */
const SMALL_BYTES = 200;
/** The timeout for a call, in milliseconds. */
const RESPOND_MS = 10_000;
/**
 * The timeout for the client to connect, even to a relay that was away, and the interval at which this is checked, in
 * milliseconds.
 */
const READY_MS = 60_000;
const LOOK_MS = 50;
/** The timeout for a read of the operator, in milliseconds. */
const READ_MS = 10_000;
/** The maximum size of an operator's answer, in bytes. The size must not grow with one user's advertisements. */
const READ_BYTES = 32 * 1024 * 1024;
/** The maximum number of characters of an answer that are shown. */
const SHOWN_CHARS = 200;
/** The number of calls between two requests of /healthz, and between two trials. */
const CALLS_A_HEALTH = 2;
const CALLS_A_TRIAL = 20;
const READS = ['/healthz', '/metrics', '/users?limit=10', '/actions', '/connections?limit=1000'];
const query = (document: string): string => `/graphql?query=${encodeURIComponent(document)}`;
/** The reads of the honest user while the store is full, one for each READ_EACH calls: its first command, and lists. */
const OWN_READS = [
  `/commands/${HONEST}/desk/alone-0`,
  query('{ connections(first: 100) { nodes { clientId status } } }'),
  query(`{ commandHistory(userId: "${HONEST}", commandId: "alone-0") { nodes { kind } } }`),
  query(`{ command(userId: "${HONEST}", clientId: "desk", commandId: "alone-0") { outcome } }`),
];
const READ_EACH = 2;
/** The number of commands in progress when the store becomes full, and their timeout in milliseconds. */
const HELD_CALLS = 10;
const HELD_MS = 60_000;

const site = SITE.parse(JSON.parse(process.argv[2] ?? ''));
const http = createHttpCaller({ url: relayUrl(site, 0), token: () => freshToken(HONEST), retries: 0 });
const link = createLinkCaller({ url: linkUrl(site, 0), token: () => freshToken(HONEST) });
const runs = new Map<string, number>();
type Params = { readonly n: number; readonly filler: string };
/** The action and the params of all called commands, by command id. */
const called = new Map<string, { readonly action: Action; readonly params: Params }>();
const rows = new Map<string, number>();
/** `hold` answers like `echo`, but only after `release`. */
type Action = 'echo' | 'hold';

/**
 * A socket that counts the commands that the relay sends. The client library cannot count them, because it would answer
 * a repeated command from memory.
 */
class CountingSocket extends WebSocket {
  constructor(url: string | URL, protocols?: string | string[]) {
    super(url, protocols);
    this.addEventListener('message', ({ data }) => {
      const frame = parseDown(String(data));
      if (frame?.type !== 'command') return;
      runs.set(frame.command_id, (runs.get(frame.command_id) ?? 0) + 1);
    });
  }
}

const runtime = createRuntime({
  url: linkUrl(site, 1),
  token: () => freshToken(HONEST),
  clientId: 'desk',
  clientType: 'console',
  WebSocket: CountingSocket,
});
runtime.handle('echo', {}, (params) => params);
const begun = Array.from({ length: HELD_CALLS }, () => Promise.withResolvers<void>());
const released = Promise.withResolvers<void>();
runtime.handle('hold', {}, async (params) => {
  begun[z.object({ n: z.number() }).parse(params).n]?.resolve();
  await released.promise;
  return params;
});
const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

async function ready(): Promise<null> {
  runtime.connect();
  for (let left = READY_MS / LOOK_MS; runtime.status.state !== 'connected'; left--) {
    if (left <= 0) throw new Error(`the honest client did not come up: ${JSON.stringify(runtime.status)}`);
    await sleep(LOOK_MS);
  }
  return null;
}

/** A call of the honest user. `options`: its time limits, if they differ from those of usual calls. */
type Call = {
  readonly action: Action;
  readonly commandId: string;
  readonly n: number;
  readonly options?: InvokeOptions;
};

/** Calls the honest user's own client. Resolves with a description of the fault, or null. */
async function call(caller: Caller, { action, commandId, n, options }: Call): Promise<unknown> {
  const filler = randomBytes((n % LARGE_EACH === 0 ? LARGE_BYTES : SMALL_BYTES) / 2).toString('hex');
  called.set(commandId, { action, params: { n, filler } });
  try {
    const answer = await caller.invoke<{ filler: string }>(
      { userId: HONEST, clientId: 'desk', action },
      { n, filler },
      { commandId, respondWithinMs: RESPOND_MS, ...options },
    );
    if (answer.outcome === 'completed' && answer.result?.filler === filler) return null;
    return JSON.stringify(answer).slice(0, 200);
  } catch (error) {
    return error;
  }
}

/**
 * Reads a path of the relay with number n, as the operator or without a token. Returns the fault, or null. It opens a
 * new connection, so that it fails if the relay accepts none.
 */
async function read(path: string, n: number, token: string | null): Promise<string | null> {
  const { promise, resolve, reject } = Promise.withResolvers<string | null>();
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const sent = get(relayUrl(site, n) + path, { agent: false, headers, timeout: READ_MS }, (response) => {
    let bytes = 0;
    let text = '';
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (text.length < SHOWN_CHARS) text += chunk.toString('utf8').slice(0, SHOWN_CHARS);
    });
    response.on('error', reject);
    response.on('end', () => {
      // Needed because GraphQL answers many refusals with 200.
      if (response.statusCode !== 200 || text.includes('"errors":'))
        resolve(`${path}: ${response.statusCode} ${text.slice(0, SHOWN_CHARS)}`);
      else resolve(bytes > READ_BYTES ? `${path}: ${bytes} bytes` : null);
    });
  });
  sent.on('timeout', () => sent.destroy(new Error(`no answer within ${READ_MS} ms`)));
  sent.on('error', reject);
  return promise.catch((error: unknown) => `${path}: ${String(error)}`);
}

/** Makes calls at a fixed rate for this many seconds, whether or not earlier calls have ended. */
async function phase(given: unknown): Promise<Phase> {
  const { name, seconds, isFull } = PHASE_OPTIONS.parse(given);
  const times: number[] = [];
  const readTimes: number[] = [];
  const wrong: string[] = [];
  const readsWrong: string[] = [];
  const healthTimes: number[] = [];
  const healthWrong: string[] = [];
  const trialTimes: number[] = [];
  const trialsWrong: string[] = [];
  const open: Promise<void>[] = [];
  let refused = 0;
  let trialsOpen = 0;
  const measure = async (into: number[], bad: string[], act: () => Promise<string | null>): Promise<void> => {
    const began = performance.now();
    const problem = await act();
    into.push(performance.now() - began);
    if (problem !== null) bad.push(problem);
  };
  const callOnce = async (n: number): Promise<string | null> => {
    const commandId = `${name}-${n}`;
    const problem = await call(n % 2 === 0 ? http : link, { action: 'echo', commandId, n });
    if (isFull && problem instanceof CallerError && problem.code === 'store_full') refused++;
    else if (problem !== null) return `${commandId}: ${String(problem)}`;
    return null;
  };
  const began = performance.now();
  const most = seconds * CALLS_A_SECOND;
  // Goes on after the last call while trials are open, because their feeds need another event.
  for (let n = 0; n < most || trialsOpen > 0; n++) {
    await sleep(Math.max(0, began + (n * 1000) / CALLS_A_SECOND - performance.now()));
    open.push(measure(times, wrong, () => callOnce(n)));
    const second = Math.floor(n / CALLS_A_SECOND);
    const path = READS[second % READS.length] ?? '/metrics';
    if (n % CALLS_A_SECOND === 0) open.push(measure(readTimes, readsWrong, () => read(path, second, ADMIN_TOKEN)));
    if (n % CALLS_A_HEALTH === 1)
      open.push(measure(healthTimes, healthWrong, () => read('/healthz', (n - 1) / CALLS_A_HEALTH, null)));
    // No trials while the store is full, because a full store refuses what they need.
    if (n % CALLS_A_TRIAL === 5 && n < most && !isFull) {
      const trial = Math.floor(n / CALLS_A_TRIAL);
      const trials = [() => newcomerCalls(site, trial, `${name}-${n}`), () => operatorWatches(site, trial)];
      trialsOpen += trials.length;
      open.push(...trials.map((act) => measure(trialTimes, trialsWrong, act).finally(() => trialsOpen--)));
    }
    if (isFull && n % READ_EACH === 0) open.push(measure(readTimes, readsWrong, () => readOwn(n / READ_EACH)));
  }
  await Promise.all(open);
  return {
    calls: times.length,
    wrong,
    refused,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    reads: readTimes.length,
    readsWrong,
    readP99: percentile(readTimes, 0.99),
    health: healthTimes.length,
    healthWrong,
    healthMax: Math.max(0, ...healthTimes),
    trials: trialTimes.length,
    trialsWrong,
  };
}

async function readOwn(n: number): Promise<string | null> {
  return read(OWN_READS[n % OWN_READS.length] ?? '', n, await freshToken(HONEST));
}

let heldCalls: readonly Promise<string | null>[] = [];

/** Makes calls whose handlers wait for `release`. Resolves when all handlers have begun. */
async function hold(): Promise<null> {
  heldCalls = begun.map(async (_, n) => {
    const commandId = `held-${n}`;
    const options = { respondWithinMs: HELD_MS };
    const problem = await call(n % 2 === 0 ? http : link, { action: 'hold', commandId, n, options });
    return problem === null ? null : `${commandId}: ${String(problem)}`;
  });
  await Promise.all(begun.map(({ promise }) => promise));
  return null;
}

/** Lets the handlers of `hold` end, and waits for the answers. */
async function release(): Promise<HeldCalls> {
  released.resolve();
  const problems = await Promise.all(heldCalls);
  return { calls: problems.length, wrong: problems.filter((problem) => problem !== null) };
}

async function rowsOf(commandId: string): Promise<number> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const response = await fetch(`${relayUrl(site, 0)}/history/command/${HONEST}/${commandId}`, { headers });
  const { items } = z.object({ items: z.array(z.unknown()).default([]) }).parse(await response.json());
  return items.length;
}

/** Records how many history rows each called command has now. */
async function note(): Promise<null> {
  for (const id of called.keys()) rows.set(id, await rowsOf(id));
  return null;
}

async function repeat(commandId: string, action: Action, params: Params): Promise<string | null> {
  const before = runs.get(commandId) ?? 0;
  const response = await fetch(`${relayUrl(site, 0)}/connections/${HONEST}/desk/actions/${action}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await freshToken(HONEST)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ params, command_id: commandId }),
  });
  const text = await response.text();
  if ((runs.get(commandId) ?? 0) > Math.max(1, before)) return `${commandId} ran again`;
  if (before === 0) return null;
  return response.status === 200 && text.includes('"completed"')
    ? null
    : `${commandId}: ${response.status} ${text.slice(0, 150)}`;
}

/**
 * Repeats each command by its id, and counts its history rows again. The relay must answer a repeated command with the
 * recorded outcome, with or without its result.
 */
async function whole(): Promise<Wholeness> {
  const idsBroken: string[] = [];
  for (const [id, { action, params }] of called) {
    const problem = await repeat(id, action, params).catch((error: unknown) => `${id}: ${String(error)}`);
    if (problem !== null) idsBroken.push(problem);
  }
  const rowsMissing: string[] = [];
  for (const [id, noted] of rows) {
    const left = await rowsOf(id).catch(() => 0);
    if (left < noted) rowsMissing.push(`${id}: ${left} of ${noted} rows`);
  }
  return { ids: called.size, idsBroken, rowsMissing };
}

serveActs({ ready, phase, hold, release, note, whole });

// The trials, which need new resources of the relay during an attack: a user's first client, and a new feed.

/** The sizes of the newcomer's params and advertisement, in bytes. They are far below every guarantee. */
const PARAMS_BYTES = 100 * 1024;
const ADVERTISED_BYTES = 50 * 1024;
/** The timeout for a trial, in milliseconds. */
const TRIAL_MS = 10_000;

/**
 * Calls a client of a user who holds nothing else before the client is connected, and then connects the client. The
 * relay must keep the params, accept the link and its advertisement, and answer the call. Returns the fault, or null.
 */
async function newcomerCalls(site: Site, n: number, commandId: string): Promise<string | null> {
  const token = (): Promise<string> => freshToken(NEWCOMER);
  const target = { userId: NEWCOMER, clientId: `newcomer-${commandId}`, action: 'greet' };
  const caller = createHttpCaller({ url: relayUrl(site, n), token, retries: 0 });
  const { clientId } = target;
  const runtime = createRuntime({ url: linkUrl(site, n + 1), token, clientId, clientType: 'console' });
  runtime.handle('greet', { description: 'd'.repeat(ADVERTISED_BYTES) }, () => 'hello');
  const times = { connectWithinMs: TRIAL_MS, respondWithinMs: TRIAL_MS };
  try {
    const called = caller.invoke(target, { filler: 'p'.repeat(PARAMS_BYTES) }, { commandId, ...times });
    runtime.connect();
    const answer = await called;
    return answer.outcome === 'completed' ? null : `newcomer ${commandId}: ${JSON.stringify(answer).slice(0, 200)}`;
  } catch (error) {
    return `newcomer ${commandId}: ${String(error)} (its client: ${JSON.stringify(runtime.status)})`;
  } finally {
    await runtime.close();
  }
}

/** Subscribes as the operator to all events of commands, and waits for the first one. Returns the fault, or null. */
async function operatorWatches(site: Site, n: number): Promise<string | null> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), TRIAL_MS);
  try {
    const response = await fetch(`${relayUrl(site, n)}/graphql`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        accept: 'text/event-stream',
        'content-type': 'application/json',
      },
      // The feed has its own filter, so that no open feed serves it already.
      body: JSON.stringify({ query: 'subscription{commandEvents(filter:{clientId:"desk"}){stage}}' }),
      signal: over.signal,
    });
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString('utf8');
      if (text.includes('"commandEvents":{')) return null;
      if (text.includes('"errors"')) break;
    }
    return `the operator's feed: ${response.status} ${text.replaceAll(/\s+/g, ' ').slice(0, 200)}`;
  } catch (error) {
    return `the operator's feed: ${String(error)}`;
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}
