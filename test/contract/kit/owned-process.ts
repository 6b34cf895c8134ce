/**
 * A process of a test with two relays, which own all partitions of memory. It talks by IPC with the process that started
 * it, whose relay owns none. `bench` names one of the deployments that it holds.
 */
import type { Backend } from '../../../src/core/backend.ts';
import { promised } from '../../../src/core/maybe-promise.ts';
import type { Transport } from '../../../src/backends/owned/transport.ts';
import type { Cancel } from '../../../src/core/ports.ts';
import { encode } from '../../../src/backends/owned/encoding.ts';
import { FakeClock } from '../../kit/clock.ts';
import type { HistoryBounds } from './bench.ts';
import { together } from './owned-bench.ts';
import { Network } from './owned-network.ts';
import { Relays } from './owned-relays.ts';

/** What the process is told. Each is done in order; `call`: answered with `done`. */
export type Told = { readonly bench: number } & (
  | { readonly kind: 'open'; readonly partitions: number; readonly history: HistoryBounds }
  | { readonly kind: 'text'; readonly to: string; readonly text: string }
  | { readonly kind: 'node'; readonly nodeId: string; readonly attached: boolean }
  | { readonly kind: 'advance'; readonly ms: number; readonly call: number }
  | { readonly kind: 'back'; readonly ms: number }
  | { readonly kind: 'due'; readonly limit: number; readonly call: number }
  | { readonly kind: 'reserved'; readonly call: number }
  | { readonly kind: 'close' }
);

/** What it says. `value`: the text of a value. */
export type Says = { readonly bench: number } & (
  | { readonly kind: 'text'; readonly from: string; readonly text: string }
  | { readonly kind: 'mail'; readonly nodeId: string; readonly text: string }
  | { readonly kind: 'done'; readonly call: number; readonly value: string }
);

/** The name of the relay in the process that started this one. */
export const HERE = 'here';
export const OWNERS = ['b', 'c'];

type Deployment = {
  readonly clock: FakeClock;
  readonly backend: Backend;
  readonly outside: Transport;
  readonly nodes: Map<string, Cancel>;
};

const deployments = new Map<number, Deployment>();

function say(said: Says): void {
  process.send?.(said);
}

function open(bench: number, partitions: number, history: HistoryBounds): Deployment {
  const clock = new FakeClock();
  const network = new Network(bench);
  const relays = new Relays({
    ...{ clock, requestClock: new FakeClock(), partitions, memory: { history } },
    join: (name) => network.join(name),
    mail: (nodeId, deliver) => network.inOrder(nodeId, deliver),
  });
  clock.alsoAwaits(() => network.quiet());
  const outside = network.join(HERE);
  outside.onText((from, text) => say({ bench, kind: 'text', from, text }));
  const backends = OWNERS.map((name) => relays.open(name));
  relays.giveAll(OWNERS);
  return { clock, backend: together(backends), outside, nodes: new Map() };
}

async function attach(bench: number, { backend, nodes }: Deployment, nodeId: string): Promise<void> {
  const detach = await backend.nodes.attach(nodeId, {
    deliver: (row) => say({ bench, kind: 'mail', nodeId, text: encode(row) }),
    lost: () => Promise.resolve(),
    linksLost() {},
    revived() {},
  });
  nodes.set(nodeId, detach);
}

async function answer(told: Told, deployment: Deployment): Promise<void> {
  const { bench } = told;
  const done = (call: number, value: unknown): void => say({ bench, kind: 'done', call, value: encode(value) });
  const { clock, backend, outside, nodes } = deployment;
  switch (told.kind) {
    case 'text':
      return outside.send(told.to, told.text, null);
    case 'node':
      if (told.attached) return attach(bench, deployment, told.nodeId);
      return nodes.get(told.nodeId)?.();
    case 'advance':
      await clock.advance(told.ms);
      return done(told.call, null);
    case 'back':
      return clock.stepWall(-told.ms);
    case 'due':
      return done(told.call, await promised(() => backend.nodes.due(told.limit)));
    case 'reserved':
      return done(told.call, await promised(() => backend.inspector.reservedScopes()));
    case 'close':
      return void deployments.delete(bench);
    case 'open':
  }
}

/** What was told before is done first: messages that arrive together run in one tick, before any promise goes on. */
let done = Promise.resolve();

process.on('message', (told: Told) => {
  done = done.then(async () => {
    if (told.kind === 'open') deployments.set(told.bench, open(told.bench, told.partitions, told.history));
    const deployment = deployments.get(told.bench);
    if (deployment) await answer(told, deployment);
  });
});
