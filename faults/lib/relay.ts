/** Starts a relay in a child process, and controls and measures its clock, memory and event loop. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { signToken } from '../../src/http/tokens.ts';
import { startChild, type Child } from './child.ts';
import { PROBED, type Probed } from './cost-probe.ts';

export const SECRET = 'a secret of the hostile runs, long enough for HS256';
export const ADMIN_TOKEN = 'the-administrator-of-the-hostile-runs';
const SOURCE = join(import.meta.dirname, '..', '..', 'src');
const ENTRY = fileURLToPath(new URL('relay-process.ts', import.meta.url));
/**
 * The time at which the stepped clock starts, in epoch milliseconds. It is fixed, so that a seed always has the same
 * meaning.
 */
const START = Date.UTC(2026, 0, 1);
/** How long tokens are valid, in seconds. It is longer than any run, even with a fast clock. */
const TOKEN_SECONDS = 400 * 24 * 3600;

/** The form of the options with which the process of a relay is started. */
export const RELAY_OPTIONS = z.object({
  /** The folder of the relay's sources. */
  source: z.string(),
  adminToken: z.string(),
  secret: z.string(),
  /**
   * The clock of the relay. `real`: the system's clock. `stepped`: a clock that starts at `startAt` and does not move
   * until it is advanced.
   */
  clock: z.enum(['real', 'stepped']),
  startAt: z.number(),
  /** Whether to open a second HTTP server without the fast path. */
  secondServer: z.boolean(),
  /** The settings of the relay, in the form that `openCallboard` takes. */
  config: z.record(z.string(), z.unknown()),
});
export type RelayOptions = z.infer<typeof RELAY_OPTIONS>;

const AT = z.object({ url: z.string(), secondUrl: z.string().nullable() });
const TURNS = z.object({
  worstMs: z.number(),
  turns: z.number(),
  stalledMs: z.number(),
  errors: z.array(z.string()),
});
/** The form of a measurement of memory after garbage collections, in bytes. */
const MEMORY = z.object({ rss: z.number(), heap: z.number(), external: z.number(), arrayBuffers: z.number() });
export type Memory = z.infer<typeof MEMORY>;

/** A relay in a separate process, which measures its main thread and its heap. */
export interface Relay extends AsyncDisposable {
  readonly pid: number;
  readonly url: string;
  readonly linkUrl: string;
  /** The URL of the server without the fast path. */
  readonly secondUrl: string;
  /** The reason why the process ended; null while it runs. */
  readonly ended: string | null;
  /**
   * Returns measurements of the main thread since the last call, and the errors logged since then. Rejects if the
   * process does not answer in time.
   */
  turns(withinMs?: number): Promise<z.infer<typeof TURNS>>;
  /** Moves the stepped clock forward. */
  advance(ms: number): Promise<void>;
  /** Runs the stepped clock at a multiple of real time. 0 stops the clock. */
  run(factor: number): Promise<void>;
  /** Returns the CPU time, user and system, since the process started, in milliseconds. */
  cpuMs(): Promise<number>;
  /** Begins to measure the cost of the following inputs. */
  costBegin(): Promise<void>;
  /** Waits until the main thread is idle, at most `withinMs`, and returns its cost since `costBegin`. */
  costEnd(withinMs: number): Promise<Probed>;
  /** Measures the memory after garbage collections. */
  memory(): Promise<Memory>;
  token(user: string, scopes?: readonly string[]): Promise<string>;
}

/** The timeout for requests that collect garbage or move the clock by hours, in milliseconds. */
const LONG_MS = 300_000;

export async function startRelay(given: Partial<RelayOptions> = {}): Promise<Relay> {
  const options: RelayOptions = {
    source: SOURCE,
    adminToken: ADMIN_TOKEN,
    secret: SECRET,
    clock: 'stepped',
    startAt: START,
    secondServer: false,
    config: {},
    ...given,
  };
  const child = await startChild(ENTRY, { args: [JSON.stringify(options)], execArgv: ['--expose-gc'] });
  const { url, secondUrl } = await child.ask('at', null, AT);
  const now = options.clock === 'real' ? Date.now() : options.startAt;
  return {
    pid: child.pid,
    url,
    linkUrl: `${url.replace(/^http/, 'ws')}/connect`,
    secondUrl: secondUrl ?? url,
    get ended() {
      return child.ended;
    },
    turns: (withinMs) => child.ask('turns', null, TURNS, withinMs),
    advance: (ms) => command(child, 'advance', { ms }),
    run: (factor) => command(child, 'run', { factor }),
    cpuMs: () => child.ask('cpu', null, z.number()),
    costBegin: async () => void (await child.ask('costBegin', null, z.null())),
    costEnd: (withinMs) => child.ask('costEnd', { withinMs }, PROBED, withinMs + LONG_MS),
    memory: () => child.ask('memory', null, MEMORY, LONG_MS),
    token: (user, scopes = ['connect', 'invoke', 'host']) =>
      signToken({ secret: options.secret, user, scopes, ttlSeconds: TOKEN_SECONDS, now }),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

async function command(child: Child, act: string, given: unknown): Promise<void> {
  await child.ask(act, given, z.null(), LONG_MS);
}
