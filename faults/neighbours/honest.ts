/**
 * Runs the honest user in a process: one client, callers over HTTP and over a link at ten calls a second, the reads of
 * an operator once a second, and trials of what is new to the relay. Argument: the site as JSON.
 */
import { randomBytes } from 'node:crypto';
import { get } from 'node:http';
import { z } from 'zod';
import { type Caller, createHttpCaller, createLinkCaller } from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { isFault, parseDown } from '../../src/protocol/frames.ts';
import { serveActs } from '../lib/acts.ts';
import { percentile, type Phase, type Wholeness } from './figures.ts';
import { ADMIN_TOKEN, freshToken, HONEST, linkUrl, NEWCOMER, relayUrl, SITE, type Site } from './site.ts';

/** The number of calls per second of the honest user. */
const CALLS_A_SECOND = 10;
/** One call in this many is large: it has more data than a history row holds. */
const LARGE_EACH = 10;
/** The size of the arguments of large calls, in bytes. */
const LARGE_BYTES = 20 * 1024;
/** The size of the arguments of all other calls, in bytes. */
const SMALL_BYTES = 200;
/** How long a call may take, in milliseconds. */
const RESPOND_MS = 10_000;
/** How long a read of the operator may take, in milliseconds. */
const READ_MS = 10_000;
/** The maximum size of an operator's answer, in bytes. It must not grow with one user's advertisements. */
const READ_BYTES = 32 * 1024 * 1024;
/** The number of calls between two requests of /healthz, and between two trials. */
const CALLS_A_HEALTH = 2;
const CALLS_A_TRIAL = 20;
const READS = ['/healthz', '/metrics', '/users?limit=10', '/actions', '/connections?limit=1000'];

const site = SITE.parse(JSON.parse(process.argv[2] ?? ''));
const http = createHttpCaller({ url: relayUrl(site, 0), token: () => freshToken(HONEST), retries: 0 });
const link = createLinkCaller({ url: linkUrl(site, 0), token: () => freshToken(HONEST) });
const runs = new Map<string, number>();
/** The params of all called commands, by command id. */
const called = new Map<string, { readonly n: number; readonly filler: string }>();
const rows = new Map<string, number>();
const target = { userId: HONEST, clientId: 'desk', action: 'echo' };

/**
 * A socket that counts the commands that the relay sends. The client library would answer a repeated command from
 * memory and hide the repetition.
 */
class CountingSocket extends WebSocket {
  constructor(url: string | URL, protocols?: string | string[]) {
    super(url, protocols);
    this.addEventListener('message', ({ data }) => {
      const frame = parseDown(String(data));
      if (isFault(frame) || frame.type !== 'command') return;
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
const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

async function ready(): Promise<null> {
  runtime.connect();
  for (let left = 200; runtime.status.state !== 'connected'; left--) {
    if (left === 0) throw new Error(`the honest client did not come up: ${JSON.stringify(runtime.status)}`);
    await sleep(50);
  }
  return null;
}

async function call(caller: Caller, commandId: string, n: number): Promise<string | null> {
  const filler = randomBytes((n % LARGE_EACH === 0 ? LARGE_BYTES : SMALL_BYTES) / 2).toString('hex');
  called.set(commandId, { n, filler });
  try {
    const answer = await caller.invoke<{ filler: string }>(
      target,
      { n, filler },
      { commandId, respondWithinMs: RESPOND_MS },
    );
    if (answer.outcome === 'completed' && answer.result?.filler === filler) return null;
    return `${commandId}: ${JSON.stringify(answer).slice(0, 200)}`;
  } catch (error) {
    return `${commandId}: ${String(error)}`;
  }
}

/**
 * Reads a path of the n-th relay, as the operator or without a token, and returns the fault, if any. It opens a new
 * connection, so that it fails when the relay accepts none.
 */
async function read(path: string, n: number, token: string | null): Promise<string | null> {
  const { promise, resolve, reject } = Promise.withResolvers<string | null>();
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const sent = get(relayUrl(site, n) + path, { agent: false, headers, timeout: READ_MS }, (response) => {
    let bytes = 0;
    response.on('data', (chunk: Buffer) => (bytes += chunk.length));
    response.on('error', reject);
    response.on('end', () => {
      if (response.statusCode !== 200) resolve(`${path}: ${response.statusCode}`);
      else resolve(bytes > READ_BYTES ? `${path}: ${bytes} bytes` : null);
    });
  });
  sent.on('timeout', () => sent.destroy(new Error(`no answer within ${READ_MS} ms`)));
  sent.on('error', reject);
  return promise.catch((error: unknown) => `${path}: ${String(error)}`);
}

/** Makes calls at a fixed rate for this long, whether or not earlier calls have ended. */
async function phase(given: unknown): Promise<Phase> {
  const { name, seconds } = z.object({ name: z.string(), seconds: z.number() }).parse(given);
  const times: number[] = [];
  const readTimes: number[] = [];
  const wrong: string[] = [];
  const readsWrong: string[] = [];
  const healthTimes: number[] = [];
  const healthWrong: string[] = [];
  const trialTimes: number[] = [];
  const trialsWrong: string[] = [];
  const open: Promise<void>[] = [];
  const measure = async (into: number[], bad: string[], act: () => Promise<string | null>): Promise<void> => {
    const began = performance.now();
    const problem = await act();
    into.push(performance.now() - began);
    if (problem !== null) bad.push(problem);
  };
  const began = performance.now();
  for (let n = 0; n < seconds * CALLS_A_SECOND; n++) {
    await sleep(Math.max(0, began + (n * 1000) / CALLS_A_SECOND - performance.now()));
    open.push(measure(times, wrong, () => call(n % 2 === 0 ? http : link, `${name}-${n}`, n)));
    const second = Math.floor(n / CALLS_A_SECOND);
    const path = READS[second % READS.length] ?? '/metrics';
    if (n % CALLS_A_SECOND === 0) open.push(measure(readTimes, readsWrong, () => read(path, second, ADMIN_TOKEN)));
    if (n % CALLS_A_HEALTH === 1)
      open.push(measure(healthTimes, healthWrong, () => read('/healthz', (n - 1) / CALLS_A_HEALTH, null)));
    if (n % CALLS_A_TRIAL === 5) {
      const trial = Math.floor(n / CALLS_A_TRIAL);
      open.push(measure(trialTimes, trialsWrong, () => newcomerCalls(site, trial, `${name}-${n}`)));
      open.push(measure(trialTimes, trialsWrong, () => operatorWatches(site, trial)));
    }
  }
  await Promise.all(open);
  return {
    calls: times.length,
    wrong,
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

async function rowsOf(commandId: string): Promise<number> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const response = await fetch(`${relayUrl(site, 0)}/history/command/${HONEST}/${commandId}`, { headers });
  const { items } = z.object({ items: z.array(z.unknown()).default([]) }).parse(await response.json());
  return items.length;
}

/** Records how many history rows each command has that was called so far. */
async function note(): Promise<null> {
  for (const id of called.keys()) rows.set(id, await rowsOf(id));
  return null;
}

async function repeat(commandId: string, params: object): Promise<string | null> {
  const before = runs.get(commandId) ?? 0;
  const response = await fetch(`${relayUrl(site, 0)}/connections/${HONEST}/desk/actions/echo`, {
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
 * Repeats each command by its id, and reads each recorded row. The relay must answer a repeated command with the
 * recorded outcome, with or without its result.
 */
async function whole(): Promise<Wholeness> {
  const idsBroken: string[] = [];
  for (const [id, params] of called) {
    const problem = await repeat(id, params).catch((error: unknown) => `${id}: ${String(error)}`);
    if (problem !== null) idsBroken.push(problem);
  }
  const rowsMissing: string[] = [];
  for (const [id, noted] of rows) {
    const left = await rowsOf(id).catch(() => 0);
    if (left < noted) rowsMissing.push(`${id}: ${left} of ${noted} rows`);
  }
  return { ids: called.size, idsBroken, rowsMissing };
}

serveActs({ ready, phase, note, whole });

// Tries, beside an attack, what only new resources of the relay can serve: a user's first client, and a new feed.

/** The size of the params and of the advertisement of the newcomer, in bytes: far below every guarantee. */
const PARAMS_BYTES = 100 * 1024;
const ADVERTISED_BYTES = 50 * 1024;
/** How long a trial may take, in milliseconds. */
const TRIAL_MS = 10_000;

/**
 * Calls a client of a user who holds nothing else, before the client is connected, then connects the client. The relay
 * must keep the params, accept the link and its advertisement, and answer the call. Returns the fault, or null.
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

/** Subscribes as the operator to all events of commands, and waits for the first. Returns the fault, or null. */
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
      // The feed has a filter of its own, so no feed that is open already serves it.
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
