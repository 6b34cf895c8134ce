/** Opens core over memory with a fake clock, and makes the principals that tests use. */
import { createMemoryBackend, type MemoryBackend } from '../../src/backends/memory/backend.ts';
import type { TableLimits } from '../../src/backends/memory/history.ts';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import { defaultPolicy, type Policy } from '../../src/core/auth/policy.ts';
import type { Principal, Scope } from '../../src/core/auth/principal.ts';
import type { Backend } from '../../src/core/backend.ts';
import { createDeviceTokens } from '../../src/http/device-tokens.ts';
import { createCore, type Core, type HelloRequest } from '../../src/core/core.ts';
import { Cursors } from '../../src/core/cursors.ts';
import type { Command } from '../../src/core/commands/command.ts';
import type { ConnectResult } from '../../src/core/connections/connection-store.ts';
import type { ClientLink } from '../../src/core/commands/client-link.ts';
import type { LinkSession } from '../../src/core/commands/link-session.ts';
import { type EventLoop, silentLog, type Log, type Tracing } from '../../src/core/ports.ts';
import type { SpillStore } from '../../src/core/history/message.ts';
import { isStoreUnavailable } from '../../src/core/errors.ts';
import { toJson, type JsonText } from '../../src/core/json.ts';
import type { Metrics } from '../../src/core/metrics.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import { createCrypto, systemLoop } from '../../src/platform/system.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { FakeClock } from './clock.ts';

export const admin: Principal = { kind: 'admin', name: 'test', expiresAt: null };

export function user(userId: string, ...scopes: Scope[]): Principal & { kind: 'user' } {
  const held = scopes.length > 0 ? scopes : (['connect', 'invoke', 'host'] as const);
  return { kind: 'user', userId, scopes: new Set(held), expiresAt: null };
}

export function advertisement(name: string) {
  return { name, summary: null, description: null, version: null, checksArguments: null, schema: null, metadata: null };
}

/** The figures of the process that a test core reports. */
export const PROCESS = { memoryBytes: 80_000_000, loopDelayMs: 1.5 } as const;

export type TestCore = {
  readonly core: Core;
  readonly backend: MemoryBackend;
  readonly clock: FakeClock;
  readonly counts: ReadonlyMap<string, number>;
};

export type TestOptions = {
  readonly policy?: Policy;
  readonly nodeId?: string;
  readonly log?: Log;
  readonly rawMessages?: boolean;
  readonly spill?: (clock: FakeClock) => SpillStore;
  readonly history?: Partial<TableLimits>;
  /** Whether the store keeps which attempt has dispatched a command, as one does that decides for other processes. */
  readonly keepsAttempts?: boolean;
  readonly shares?: Shares;
  readonly tracing?: Tracing;
  readonly loop?: EventLoop;
  /** Wraps the backend, for example with a port that fails or does not answer. */
  readonly wrap?: (backend: MemoryBackend) => MemoryBackend;
};

/** Opens a single core over memory, with a FakeClock. */
export async function testCore(options: TestOptions = {}): Promise<TestCore & AsyncDisposable> {
  const clock = new FakeClock();
  const counts = new Map<string, number>();
  const { sha256 } = crypto;
  const { shares = createShares() } = options;
  const memory = createMemoryBackend({
    markSecret: 'x',
    clock,
    log: silentLog,
    sha256,
    shares,
    history: options.history ?? {},
    keepsAttempts: options.keepsAttempts ?? false,
  });
  const backend = options.wrap?.(memory) ?? memory;
  const core = await startCore({ ...options, shares }, { backend, clock, counts, spill: spillOf(options, clock) });
  return { core, backend, clock, counts, [Symbol.asyncDispose]: () => core.close() };
}

const crypto = createCrypto('test');

export function spillOf({ spill }: TestOptions, clock: FakeClock): SpillStore {
  return spill?.(clock) ?? createMemorySpill(clock, crypto);
}

export type CoreParts = {
  readonly backend: Backend;
  readonly clock: FakeClock;
  readonly counts: Map<string, number>;
  readonly spill: SpillStore;
};

export async function startCore(options: TestOptions, { backend, clock, counts, spill }: CoreParts): Promise<Core> {
  const meter = createMetrics(() => clock.now());
  const metrics: Metrics = {
    ...meter,
    count(name, label) {
      meter.count(name, label);
      const key = label === undefined ? name : `${name}:${label}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    },
    snapshot: () => counts,
  };
  const { policy = defaultPolicy, log = silentLog } = options;
  const core = createCore({
    devices: createDeviceTokens({ secret: 'a secret of the tests, which is long enough' }, () => clock.now()),
    loop: options.loop ?? systemLoop,
    processMeter: { take: () => PROCESS },
    nodeId: options.nodeId ?? 'n1',
    backend,
    clock,
    crypto,
    cursors: new Cursors(crypto),
    policy,
    log,
    metrics,
    spill,
    shares: options.shares ?? createShares(),
    tracing: options.tracing ?? null,
    rawMessages: options.rawMessages ?? false,
    server: { version: '1.2.3', label: null, traceUrl: null, maxBodyBytes: 1_000_000 },
  });
  await core.start();
  return core;
}

export type Sent = { readonly command: Command; readonly params: JsonText | null; readonly remainingMs: number };

/** A client that accepts everything that core sends. It records this in `sent`, `cancels` and `closes`. */
export class TestClient {
  readonly sent: Sent[];
  readonly cancels: string[];
  readonly closes: { cause: string; instanceId: string | null }[];
  readonly session: LinkSession;
  /** Whether the link was the client's first, resumed the instance, or replaced another one. */
  readonly opened: ConnectResult['kind'] | undefined;
  /** The commands of an earlier link of the instance that had not ended when this one opened. */
  readonly unfinished: readonly Command[];
  backlog = 0;

  constructor(session: LinkSession, log: Pick<TestClient, 'sent' | 'cancels' | 'closes'>) {
    this.session = session;
    this.opened = session.result?.kind;
    this.unfinished = session.unfinished;
    this.sent = log.sent;
    this.cancels = log.cancels;
    this.closes = log.closes;
  }

  result(command: Command, value: unknown = { ok: true }) {
    return this.session.end(command.commandId, { kind: 'result', payload: toJson(value), error: null, refused: false });
  }

  error(command: Command, code: string, refused = false) {
    return this.session.end(command.commandId, {
      kind: 'error',
      payload: null,
      error: { code, message: 'no' },
      refused,
    });
  }

  get last(): Command {
    const last = this.sent.at(-1);
    if (!last) throw new Error('nothing was sent');
    return last.command;
  }
}

export async function connect(
  core: Core,
  requester: Principal & { kind: 'user' },
  over: Partial<HelloRequest> = {},
  isWelcomed = true,
): Promise<TestClient> {
  const sent: Sent[] = [];
  const cancels: string[] = [];
  const closes: { cause: string; instanceId: string | null }[] = [];
  let client: TestClient | undefined;
  const link: ClientLink = {
    sendCommand: (command, params, remainingMs) => void sent.push({ command, params, remainingMs }),
    sendCancel: (commandId) => void cancels.push(commandId),
    backlog: () => client?.backlog ?? 0,
    close(cause, instanceId) {
      closes.push({ cause, instanceId });
      // A relay that closes before its links does not record the ends of the links. They end with the relay's lease.
      client?.session.closed(cause).catch((error: unknown) => {
        if (!isStoreUnavailable(error)) throw error;
      });
    },
  };
  const hello: HelloRequest = {
    clientId: 'tab',
    instanceId: 'i1',
    clientType: 'browser',
    metadata: null,
    actions: [advertisement('open')],
    ...over,
  };
  const session = await core.links.open(requester, hello, link);
  client = new TestClient(session, { sent, cancels, closes });
  if (isWelcomed) session.begin();
  return client;
}
