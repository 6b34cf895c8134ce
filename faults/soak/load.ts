/** Puts a steady load on the relay of a soak run: connected clients, and callers that make calls at a fixed rate. */
import { createHttpCaller, createLinkCaller, type Caller } from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import type { Relay } from '../lib/relay.ts';

export interface Load extends AsyncDisposable {
  readonly calls: number;
  /** The number of requests that callers repeated because their connection broke. */
  readonly resent: number;
  readonly wrong: readonly string[];
  /** Records a problem, unless there are already too many. */
  note(problem: string): void;
  /** Starts no more calls, and resolves when all started calls have ended. */
  finish(): Promise<void>;
  /** Makes this many calls, some of them at the same time, and resolves when all have ended. */
  make(count: number): Promise<void>;
}

/** The number of users. Each has one client. */
const USERS = 10;
/** The interval at which the load starts the calls that are due, in milliseconds. */
const TICK_MS = 10;
/** The number of calls in each hundred with more data than a history row can have. */
const LARGE = 2;
/** The number of calls in each hundred that use HTTP. */
const OVER_HTTP = 10;
/** The size of the arguments of large calls, in bytes. */
const LARGE_BYTES = 20 * 1024;
/** The size of the arguments of all other calls, in bytes. */
const SMALL_BYTES = 200;
/** The maximum number of failed calls that the report shows: the first ones. */
const KEPT_WRONG = 20;
/** The number of calls that `make` has in progress at the same time. */
const LANES = 20;
/** The maximum number of nested causes of an error that the report shows. */
const CAUSES = 5;
/** The maximum number of unfinished calls, above which the load waits. */
const OPEN_MAX = 2_000;
/** The time limit for a client's answer, in milliseconds of the relay's clock. */
const RESPOND_MS = 300_000;

/**
 * Connects clients and callers of ten users. `rate` calls start per second, whether or not earlier calls have ended.
 */
export async function openLoad(relay: Relay, rate: number): Promise<Load> {
  let resent = 0;
  const fetch: typeof globalThis.fetch = (...asked) =>
    globalThis.fetch(...asked).catch((error: unknown) => {
      resent++;
      throw error;
    });
  const users = await Promise.all(Array.from({ length: USERS }, (_, i) => openUser(relay, `user-${i}`, fetch)));
  let calls = 0;
  const open = new Set<Promise<void>>();
  const wrong: string[] = [];
  const began = performance.now();
  const note = (problem: string): void => {
    if (wrong.length < KEPT_WRONG) wrong.push(problem);
  };
  const call = async (n: number): Promise<void> => {
    const user = users[n % USERS];
    if (!user) return;
    const filler = 'f'.repeat(n % 100 < LARGE ? LARGE_BYTES : SMALL_BYTES);
    const problem = await user.call(n, filler, n % 100 >= 100 - OVER_HTTP);
    if (problem !== null) note(problem);
  };
  const begin = (): void => {
    const made = call(calls++).finally(() => open.delete(made));
    open.add(made);
  };
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - began) / 1000) * rate);
    while (calls < due && open.size < OPEN_MAX) begin();
  }, TICK_MS);
  return {
    get calls() {
      return calls;
    },
    get resent() {
      return resent;
    },
    wrong,
    note,
    async finish() {
      clearInterval(timer);
      await Promise.all(open);
    },
    async make(count) {
      const last = calls + count;
      const lane = async (): Promise<void> => {
        while (calls < last) await call(calls++);
      };
      await Promise.all(Array.from({ length: LANES }, lane));
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await Promise.all(users.map((user) => user.close()));
    },
  };
}

async function openUser(relay: Relay, userId: string, fetch: typeof globalThis.fetch) {
  const token = await relay.token(userId);
  const runtime = createRuntime({ url: relay.linkUrl, token, clientId: 'desk', clientType: 'console' });
  runtime.handle('echo', {}, (params) => params);
  runtime.connect();
  const callers = {
    link: createLinkCaller({ url: relay.linkUrl, token }),
    http: createHttpCaller({ url: relay.url, token, fetch }),
  };
  const ask = async (caller: Caller, n: number, filler: string): Promise<string | null> => {
    const target = { userId, clientId: 'desk', action: 'echo' };
    const options = { commandId: `c-${n}`, connectWithinMs: RESPOND_MS, respondWithinMs: RESPOND_MS };
    const answer = await caller.invoke(target, { n, filler }, options);
    return answer.outcome === 'completed' ? null : `c-${n}: ${JSON.stringify(answer).slice(0, 200)}`;
  };
  return {
    call: (n: number, filler: string, overHttp: boolean): Promise<string | null> =>
      ask(overHttp ? callers.http : callers.link, n, filler).catch((error: unknown) => `c-${n}: ${chainOf(error)}`),
    async close(): Promise<void> {
      await Promise.all([callers.link.close(), callers.http.close(), runtime.close()]);
    },
  };
}

/** Returns the messages of an error and of its causes, because "could not be reached" alone does not say why. */
function chainOf(error: unknown): string {
  const chain: string[] = [];
  for (let at = error; at !== undefined && chain.length < CAUSES; at = at instanceof Error ? at.cause : undefined)
    chain.push(at instanceof Error && 'code' in at ? `${String(at)} (${String(at.code)})` : String(at));
  return chain.join(', because of ');
}
