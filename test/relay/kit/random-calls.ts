/** Draws random states of a relay and random invocations from a seed. */
import type { Principal } from '../../../src/core/auth/principal.ts';
import type { Invocation, InvokeRequest } from '../../../src/core/core.ts';
import { toJson } from '../../../src/core/json.ts';
import { settle } from '../../kit/clock.ts';
import { admin, advertisement, connect, user, type TestClient, type TestCore } from '../../kit/core.ts';

export type World = {
  /** Changes the state in a random way. */
  act(): Promise<void>;
  /** Draws a random invocation. */
  call(): { readonly requester: Principal; readonly request: InvokeRequest };
  /** Invokes, and resolves as soon as it is known whether the relay admits the command. */
  invoke(requester: Principal, request: InvokeRequest): Promise<Invocation | { readonly kind: 'waiting' }>;
  /** Closes the links of all clients. */
  leave(): Promise<void>;
};

export type SeededRandom = {
  /** Returns a random number of at least 0 and less than 1. */
  next(): number;
  pick<T>(values: readonly [T, ...T[]]): T;
  world(relay: Pick<TestCore, 'core' | 'clock'>): World;
};

/** Returns a small random generator (mulberry32), whose numbers depend only on the seed. */
export function seeded(seed: number): SeededRandom {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const pick = <T>(values: readonly [T, ...T[]]): T => values[Math.floor(next() * values.length)] ?? values[0];
  const random: SeededRandom = { next, pick, world: (relay) => createWorld(relay, random) };
  return random;
}

const USERS = ['alice', 'bob'] as const;

function createWorld({ core, clock }: Pick<TestCore, 'core' | 'clock'>, { next, pick }: SeededRandom): World {
  const clients = new Map<string, TestClient>();
  const call = (): { requester: Principal; request: InvokeRequest } => {
    const userId = pick(USERS);
    const request: InvokeRequest = {
      userId,
      clientId: pick(['tab', 'tab', 'other']),
      action: pick(['open', 'open', 'open', 'close', 'forbidden']),
      params: pick([null, toJson({ n: 1 }), toJson({ n: 2 }), toJson({ text: 'x'.repeat(200) })]),
      commandId: pick([null, 'c1', 'c2', 'c3', `n${Math.floor(next() * 1000)}`]),
      instanceId: pick([null, null, 'i1', 'i2']),
      waitFor: pick(['admitted', 'acknowledged', 'completed']),
      connectWithinMs: pick([0, 0, 5_000]),
      respondWithinMs: 30_000,
    };
    return { requester: pick([user(userId), user(userId), admin]), request };
  };
  const invoke: World['invoke'] = async (requester, request) => {
    const running = core.rpc.invoke(requester, request);
    running.catch(() => {});
    // Only one `settle` may run at a time, so it is awaited even if the relay has answered.
    await settle();
    return Promise.race([running, Promise.resolve({ kind: 'waiting' } as const)]);
  };
  const online = async (): Promise<void> => {
    if (core.draining) return;
    const userId = pick(USERS);
    const actions = pick([['open'], ['open', 'close', 'forbidden']]).map(advertisement);
    const over = { clientId: pick(['tab', 'tab', 'other']), instanceId: pick(['i1', 'i2']), actions };
    clients.set(`${userId}/${over.clientId}`, await connect(core, user(userId), over));
  };
  const someClient = (): TestClient | undefined => [...clients.values()][Math.floor(next() * clients.size)];
  const acts: readonly [() => Promise<unknown>, ...(() => Promise<unknown>)[]] = [
    online,
    online,
    async () => {
      const { requester, request } = call();
      await invoke(requester, request);
    },
    async () => {
      const client = someClient();
      const last = client?.sent.at(-1);
      if (client && last) await client.result(last.command);
    },
    async () => {
      const [name] = [...clients].find(() => next() < 0.5) ?? [];
      if (name === undefined) return;
      await clients.get(name)?.session.closed('client_closed');
      clients.delete(name);
    },
    () => clock.advance(pick([0, 500, 6_000, 40_000])),
    async () => {
      if (next() < 0.04) await core.drain(0);
    },
  ];
  return {
    call,
    invoke,
    async act() {
      await pick(acts)();
      await settle();
    },
    async leave() {
      for (const client of clients.values()) await client.session.closed('client_closed');
      clients.clear();
      await settle();
    },
  };
}
