/** Connects a client runtime to a scripted relay, with a clock that the test moves. */
import {
  createRuntime,
  type LinkStatus,
  type Runtime,
  type RuntimeOptions,
} from '../../../src/clients/runtime/index.ts';
import { FakeClock } from '../../kit/clock.ts';
import { startFakeRelay, type Admission, type FakeLink, type FakeRelay } from '../../kit/fake-relay.ts';

type Given = Partial<RuntimeOptions> & { readonly admit?: () => Admission };

export type RuntimeBench = AsyncDisposable & {
  readonly relay: FakeRelay;
  readonly runtime: Runtime;
  readonly clock: FakeClock;
  readonly errors: unknown[];
  readonly dropped: string[];
  /** Connects the runtime, and resolves with the link over which it sent its hello. */
  up(): Promise<FakeLink>;
  /** Resolves with the current status if it has this state, otherwise with the next status that has it. */
  until<S extends LinkStatus['state']>(state: S): Promise<Extract<LinkStatus, { state: S }>>;
  /** Breaks the link and waits for the reconnect. */
  again(link: FakeLink): Promise<FakeLink>;
};

/**
 * Starts a fake relay, and a runtime with a FakeClock. The runtime's delays have no jitter: each is as long as
 * possible.
 */
export async function startRuntimeBench({ admit, ...options }: Given = {}): Promise<RuntimeBench> {
  const relay = await startFakeRelay(admit);
  const clock = new FakeClock();
  const errors: unknown[] = [];
  const dropped: string[] = [];
  const runtime = createRuntime({
    url: relay.url,
    token: 'token-1',
    clientId: 'desk',
    instanceId: 'i-1',
    clientType: 'console',
    clock,
    random: () => 0.999999,
    onError: (error) => errors.push(error),
    onDrop: ({ commandId, reason }) => dropped.push(`${commandId} ${reason}`),
    ...options,
  });
  const until: RuntimeBench['until'] = (state) => untilState(runtime, state);
  async function up(): Promise<FakeLink> {
    runtime.connect();
    const link = await relay.link();
    await runtime.ready();
    return link;
  }
  async function again(link: FakeLink): Promise<FakeLink> {
    const away = until('disconnected');
    link.drop();
    const { retryInMs } = await away;
    await clock.advance(retryInMs ?? 0);
    return up();
  }
  async function dispose(): Promise<void> {
    try {
      await runtime.close({ withinMs: 0 });
    } finally {
      await relay[Symbol.asyncDispose]();
    }
  }
  return {
    relay,
    runtime,
    clock,
    errors,
    dropped,
    up,
    until,
    again,
    [Symbol.asyncDispose]: async () => {
      const closed = dispose();
      await clock.advance(0);
      await closed;
    },
  };
}

export function untilState<S extends LinkStatus['state']>(
  runtime: Pick<Runtime, 'status' | 'onStatus'>,
  state: S,
): Promise<Extract<LinkStatus, { state: S }>> {
  const matches = (status: LinkStatus): status is Extract<LinkStatus, { state: S }> => status.state === state;
  return new Promise((resolve) => {
    if (matches(runtime.status)) return resolve(runtime.status);
    const stop = runtime.onStatus((status) => {
      if (!matches(status)) return;
      stop();
      resolve(status);
    });
  });
}

/** Returns a promise, and the function that resolves it. */
export function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void } {
  const { promise, resolve } = Promise.withResolvers<T>();
  return { opened: promise, open: resolve };
}

export function json(payload: string | null): unknown {
  return payload === null ? null : JSON.parse(payload);
}
