/** Starts a relay with clients and calls for the tests of the console. */
import type { Settings } from '../../../src/callboard.ts';
import { createHttpCaller, type Handle } from '../../../src/clients/caller/index.ts';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { AWAIT_WITHIN_MS, RESPOND_WITHIN_MS } from '../../../src/core/limits.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { startTcpProxy } from '../../kit/tcp-proxy.ts';

/** The number of clients that `startCrowd` connects, and of calls that it makes. One page of a list shows fewer. */
const CROWD = 50;

/**
 * A relay with alice's client `kiosk-1`. The client has an action that adds notes, one that fails, and one that runs
 * until it is cancelled.
 */
export type ConsoleRelay = AsyncDisposable & {
  readonly relay: RealRelay;
  readonly runtime: Runtime;
  /** The caller that makes calls on behalf of alice. */
  readonly caller: ReturnType<typeof createHttpCaller>;
};

const SCHEMA = {
  type: 'object',
  required: ['text'],
  properties: { text: { type: 'string', maxLength: 20 }, copies: { type: 'integer', minimum: 1, maximum: 20 } },
};
/** An action that the policy denies to everybody, so that the relay refuses a call which the client would run. */
const DENIED = 'notes.wipe';
const policy = {
  rules: [{ name: 'no-wiping', effect: 'deny', actions: [DENIED] }],
  scopes: [],
  userCapacity: null,
} as const;

export async function startConsoleRelay(settings: Partial<Settings> = {}): Promise<ConsoleRelay> {
  const relay = await startRealRelay({ policy, ...settings });
  const runtime = createRuntime({
    url: relay.link,
    token: await tokenOf(relay),
    clientId: 'kiosk-1',
    clientType: 'console',
  });
  runtime.handle('notes.add', { summary: 'Adds a note', schema: SCHEMA }, ({ text }) => ({ added: text }));
  runtime.handle('notes.fail', { summary: 'Fails' }, () => {
    throw new Error('no paper');
  });
  runtime.handle('notes.wait', { summary: 'Waits' }, (_params, { signal }) => {
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  runtime.handle(DENIED, { summary: 'Removes all notes' }, () => ({ removed: true }));
  runtime.connect();
  await runtime.ready();
  return {
    relay,
    runtime,
    caller: createHttpCaller({ url: relay.url, token: await relay.token('alice', 'invoke') }),
    async [Symbol.asyncDispose]() {
      await runtime.close({ withinMs: 0 });
      await relay[Symbol.asyncDispose]();
    },
  };
}

export type RunningCall = AsyncDisposable & { readonly handle: Handle; readonly commandId: string };

/**
 * Starts a call of kiosk-1's action `notes.wait`, with a caller that waits for it. The call runs until it is cancelled
 * or disposed of. Its budgets are the greatest, and each test starts its own, so that none ends before its test.
 */
export async function startRunning({ caller }: Pick<ConsoleRelay, 'caller'>): Promise<RunningCall> {
  const target = { userId: 'alice', clientId: 'kiosk-1', action: 'notes.wait' };
  const budget = { waitFor: 'acknowledged', respondWithinMs: RESPOND_WITHIN_MS.max } as const;
  const { handle } = await caller.invoke(target, {}, budget);
  void caller.await(handle, { withinMs: AWAIT_WITHIN_MS.max }).catch(() => undefined);
  return {
    handle,
    commandId: handle.commandId,
    [Symbol.asyncDispose]: async () => void (await caller.cancel(handle)),
  };
}

const tokenOf = (relay: RealRelay): Promise<string> => relay.token('alice', 'connect', 'invoke');

export type DoomedClient = AsyncDisposable & {
  /** Resolves when the client runs its action `notes.print`. */
  readonly entered: Promise<void>;
  /** Cuts the client's link and never lets it reconnect, as if its machine lost power. */
  readonly kill: () => void;
};

/** Connects a client `kiosk-2` of alice. Its action `notes.print` never ends. */
export async function startDoomedClient(relay: RealRelay): Promise<DoomedClient> {
  const proxy = await startTcpProxy(relay.link);
  const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
  const url = `${proxy.url.replace(/^http/, 'ws')}/connect`;
  const runtime = createRuntime({ url, token: await tokenOf(relay), clientId: 'kiosk-2', clientType: 'console' });
  runtime.handle('notes.print', { summary: 'Prints all notes' }, () => {
    enter();
    return new Promise(() => undefined);
  });
  runtime.connect();
  await runtime.ready();
  return {
    entered,
    kill: () => proxy.cut(),
    async [Symbol.asyncDispose]() {
      await runtime.close({ withinMs: 0 });
      await proxy[Symbol.asyncDispose]();
    },
  };
}

/**
 * Connects clients `till-1`, `till-2` and so on of the user `shop`, and calls each once, so that lists have several
 * pages.
 */
export async function startCrowd({ relay }: ConsoleRelay): Promise<AsyncDisposable> {
  const token = await relay.token('shop', 'connect', 'invoke');
  const caller = createHttpCaller({ url: relay.url, token });
  const clientIds = Array.from({ length: CROWD }, (_, at) => `till-${at + 1}`);
  const runtimes = await Promise.all(
    clientIds.map(async (clientId) => {
      const runtime = createRuntime({ url: relay.link, token, clientId, clientType: 'console' });
      for (const name of ['door.open', 'receipt.print', 'sum.show']) runtime.handle(name, {}, () => ({ done: true }));
      runtime.connect();
      await runtime.ready();
      return runtime;
    }),
  );
  await Promise.all(clientIds.map((clientId) => caller.invoke({ userId: 'shop', clientId, action: 'sum.show' }, {})));
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(runtimes.map((runtime) => runtime.close({ withinMs: 0 })));
    },
  };
}
