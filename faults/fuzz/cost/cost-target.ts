/** Starts the relay whose costs are measured, stores much data in it, and measures single inputs. */
import { Agent } from 'node:http';
import { Redis } from 'ioredis';
import { z } from 'zod';
import type { WebSocket } from 'ws';
import { createRuntime } from '../../../src/clients/runtime/index.ts';
import { startRedis } from '../../../test/kit/redis.ts';
import { openBareLink } from '../../lib/link.ts';
import { ADMIN_TOKEN, startRelay } from '../../lib/relay.ts';
import { reportPlaces, storeCalls, storeStreams } from '../../lib/stored-data.ts';
import type { Draw } from '../../lib/random.ts';
import { NotPrepared, type Cost, type CostInput, type Sender } from './cost.ts';
import type { Probed } from '../../lib/cost-probe.ts';

export const MODES = ['direct', 'shared'] as const;
export type Mode = (typeof MODES)[number];

/** The amounts of data that are stored before the search. */
export type Amounts = {
  readonly clients: number;
  readonly streams: number;
  readonly rowsOfStream: number;
  readonly calls: number;
  readonly otherUsers: number;
};
/** Ten clients of the sixteen that fit into a user's share of advertisements, ten full streams, and 20,000 calls. */
export const AMOUNTS: Amounts = { clients: 10, streams: 10, rowsOfStream: 10_000, calls: 20_000, otherUsers: 50 };

/** The user who owns the stored data and sends the inputs of `user`. */
export const OWNER = 'rich';
const SINK = 'sink';
const SITE = 'board';
const PLANTED = 'planted';
/** How long an input may keep the relay busy, in milliseconds. */
const BUSY_MS = 60_000;
/** The duration of a ping in milliseconds above which Redis must still have been running a script. */
const PING_MS = 4;
/** The Redis commands that this program itself sends. */
const OWN_COMMANDS = new Set(['slowlog', 'info', 'config', 'ping']);
/** The minimum duration of entries in the slow log, in microseconds. */
const SLOW_MICROS = 200;
const SLOW_ENTRIES = 4_096;

/** A process whose main thread a cost probe measures: a relay, or in a test another process. */
export type Probe = {
  costBegin(): Promise<void>;
  costEnd(withinMs: number): Promise<Probed>;
};

export interface CostTarget extends AsyncDisposable {
  readonly url: string;
  readonly linkUrl: string;
  readonly agent: Agent;
  token(sender: Sender): string;
  /** Returns a number that no input has had before, for ids that must be new. */
  next(): number;
  /** Returns a value for a parameter of this name that matches stored data; null if there is none. */
  known(name: string, draw: Draw): string | null;
  measure(input: CostInput): Promise<Cost>;
  /** Returns the lines that the relay has logged as errors since the last call. */
  errors(): Promise<readonly string[]>;
}

type CostTargetOptions = {
  readonly mode: Mode;
  readonly amounts: Amounts;
  readonly source?: string | undefined;
  readonly onProgress?: (line: string) => void;
};

export async function openCostTarget(options: CostTargetOptions): Promise<CostTarget> {
  const { mode, amounts, source, onProgress = () => {} } = options;
  const server = mode === 'shared' ? await startRedis() : null;
  const store = server && (await openStore(server.url));
  const legacy = { commandStream: null, pending: null };
  const redis = server && {
    ...({ url: server.url, store: 'redis', partitions: 1, durability: 'memory', namespace: 'cost' } as const),
    ...{ strictMigration: false, legacy },
  };
  const relay = await startRelay({
    clock: 'real',
    config: { rawMessages: true, mcp: 'on', ...(redis && { redis }) },
    ...(source !== undefined && { source }),
  });
  const own = await relay.token(OWNER);
  const links: WebSocket[] = [];
  const runtime = createRuntime({ url: relay.linkUrl, token: own, clientId: SINK, clientType: 'console' });
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const stored = new Map<string, number>();
  const owner = {
    ...{ user: OWNER, urls: [relay.url], token: async () => own },
    count: (name: string, by: number) => void stored.set(name, (stored.get(name) ?? 0) + by),
  };
  links.push(...(await reportPlaces(owner, amounts.clients)));
  await storeStreams(owner, { streams: amounts.streams, rows: amounts.rowsOfStream });
  await storeCalls(owner, amounts.calls);
  for (let n = 0; n < amounts.otherUsers; n++) {
    const payload = JSON.stringify({ actions: [{ name: 'echo', description: 'd'.repeat(20_000) }] });
    const token = await relay.token(`user-${n}`);
    links.push(await openBareLink(relay.linkUrl, { token, clientId: 'desk', payload }));
  }
  links.push(await openBareLink(relay.linkUrl, { token: own, clientId: 'tools', payload: toolsText() }));
  runtime.handle('echo', {}, (params) => params);
  const site = runtime.site({ siteId: SITE, actions: ['echo'], capabilityProfile: { actionInvocation: true } });
  runtime.connect();
  await site.registered;
  await fetch(`${relay.url}/connections/${OWNER}/${SINK}/actions/echo`, {
    method: 'POST',
    headers: { authorization: `Bearer ${own}`, 'content-type': 'application/json' },
    body: JSON.stringify({ params: {}, command_id: PLANTED }),
  });
  onProgress(`stored: ${[...stored].map(([name, count]) => `${count} ${name}`).join(', ')}`);
  let ids = 0;
  return {
    url: relay.url,
    linkUrl: relay.linkUrl,
    agent,
    token: (sender) => (sender === 'admin' ? ADMIN_TOKEN : own),
    next: () => ids++,
    known: (name, draw) => knownValue(name, draw, amounts),
    measure: (input) => measureInput(input, relay, store),
    errors: async () => (await relay.turns()).errors,
    async [Symbol.asyncDispose]() {
      for (const link of links) link.terminate();
      await runtime.close();
      agent.destroy();
      await relay[Symbol.asyncDispose]();
      store?.close();
      await server?.stop();
    },
  };
}

/** Returns an advertisement with the maximum number of actions of a client, for the inputs of agents. */
function toolsText(): string {
  const schema = { type: 'object', properties: { text: { type: 'string', description: 's'.repeat(1_000) } } };
  const description = 'a'.repeat(1_000);
  return JSON.stringify({
    actions: Array.from({ length: 250 }, (_, n) => ({ name: `tool${n}`, description, schema })),
  });
}

function knownValue(name: string, draw: Draw, { clients, streams, otherUsers }: Amounts): string | null {
  const of: Readonly<Record<string, () => string>> = {
    user: () => (draw.chance(0.85) ? OWNER : `user-${draw.int(0, otherUsers - 1)}`),
    // Inputs that disconnect or cancel affect only clients whose data do not matter.
    client: () => (draw.chance(0.5) ? `browser-${draw.int(0, clients - 1)}` : draw.pick(['giver', 'absent'])),
    stream: () => `${OWNER}/scan${draw.int(0, streams - 1)}`,
    command: () => draw.pick([PLANTED, 'absent']),
    site: () => SITE,
    window: () => `w${draw.int(0, 99)}`,
    context: () => `t${draw.int(0, 999)}`,
    action: () => draw.pick(['echo', 'give', 'absent']),
    labels: () => 'm=m',
    text: () => draw.pick(['m', 'browser', 'absent']),
    prefix: () => draw.pick([`${OWNER}/`, `${OWNER}/scan`, 'scan']),
    names: () => draw.pick(['commands_ended', 'client_links', 'caller_links']),
    code: () => 'absent',
    kind: () => 'event',
    reason: () => 'because it must be',
  };
  const word = name.replace(/_?[iI]ds?$/, '').toLowerCase();
  return of[word === 'owner' ? 'user' : word]?.() ?? null;
}

/** Sends an input once. Measures from before it is sent until the process and its Redis are idle. */
export async function measureInput(input: CostInput, probe: Probe, store: CostStore | null): Promise<Cost> {
  try {
    const act = await input.prepare();
    await probe.costEnd(BUSY_MS);
    await store?.begin();
    await probe.costBegin();
    const answer = await act().catch((error: unknown) => `no answer: ${String(error).slice(0, 80)}`);
    let probed = await probe.costEnd(BUSY_MS);
    let turnMs = probed.turnMs;
    // While Redis runs a script for it, the relay only seems idle.
    while (store && (await store.busy())) {
      probed = await probe.costEnd(BUSY_MS);
      turnMs = Math.max(turnMs, probed.turnMs);
    }
    const scripts = (await store?.end()) ?? { scriptMs: 0, redisMs: 0, script: '' };
    return { turnMs, cpuMs: probed.cpuMs, ...scripts, answer };
  } catch (error) {
    // An input that cannot be prepared is not measured, for example a command for a link that the relay has closed.
    if (!(error instanceof NotPrepared)) throw error;
    return { turnMs: 0, cpuMs: 0, scriptMs: 0, redisMs: 0, script: '', answer: error.message };
  } finally {
    await input.finish();
  }
}

/** Measures the cost of the relay's commands in Redis, with the slow log and the CPU time of Redis's main thread. */
type CostStore = {
  begin(): Promise<void>;
  /** Returns whether Redis has just run something. */
  busy(): Promise<boolean>;
  end(): Promise<{ readonly scriptMs: number; readonly redisMs: number; readonly script: string }>;
  close(): void;
};

const SLOW = z.array(z.tuple([z.number(), z.number(), z.number(), z.array(z.string())]).rest(z.unknown()));

async function openStore(url: string): Promise<CostStore> {
  const client = new Redis(url);
  await client.config('SET', 'slowlog-log-slower-than', String(SLOW_MICROS));
  await client.config('SET', 'slowlog-max-len', String(SLOW_ENTRIES));
  const used = async (): Promise<number> => {
    const info = await client.info('cpu');
    const seconds = ['user', 'sys'].map((kind) =>
      Number(new RegExp(`^used_cpu_${kind}_main_thread:([\\d.]+)`, 'm').exec(info)?.[1] ?? Infinity),
    );
    return seconds.reduce((sum, one) => sum + one, 0) * 1000;
  };
  let from = 0;
  return {
    async begin() {
      await client.call('SLOWLOG', 'RESET');
      from = await used();
    },
    async busy() {
      const began = performance.now();
      await client.ping();
      return performance.now() - began > PING_MS;
    },
    async end() {
      // The slow log measures elapsed time, including the time of other programs. No script can have taken more than
      // the CPU time of Redis.
      const most = (await used()) - from;
      const entries = SLOW.parse(await client.call('SLOWLOG', 'GET', String(SLOW_ENTRIES)));
      const others = entries
        .map(([, , micros, words]) => ({ ms: micros / 1000, words }))
        .filter(({ words }) => !OWN_COMMANDS.has((words[0] ?? '').toLowerCase()));
      const longest = others.reduce<(typeof others)[number] | null>(
        (most, one) => (most && most.ms >= one.ms ? most : one),
        null,
      );
      return {
        scriptMs: Math.min(most, longest?.ms ?? 0),
        redisMs: Math.min(
          most,
          others.reduce((sum, { ms }) => sum + ms, 0),
        ),
        script: longest ? nameOf(longest.words) : '',
      };
    },
    close: () => client.disconnect(),
  };
}

/** Returns the name of a command in the slow log: for a script, the words that describe its work, shortened. */
function nameOf(words: readonly string[]): string {
  return words
    .slice(0, 5)
    .map((word) => word.replaceAll(/[^\x20-\x7e]/g, '.').slice(0, 24))
    .join(' ');
}
