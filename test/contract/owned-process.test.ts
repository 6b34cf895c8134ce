/**
 * Runs the contracts of the stores from a process whose relay owns no partition: another process has them all, and each
 * call goes there and back.
 */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Backend } from '../../src/core/backend.ts';
import type { CommandKey } from '../../src/core/ids.ts';
import type { ReservedScope } from '../../src/core/commands/delivery-inspector.ts';
import { decode } from '../../src/backends/owned/encoding.ts';
import { FakeClock } from '../kit/clock.ts';
import { storeContracts } from './all-stores.ts';
import { commandContract } from './commands.ts';
import { awayPauseContract } from './pauses.ts';
import { commandModel } from './commands-model.ts';
import { inspectorContract } from './inspector.ts';
import { newestContract } from './inspector-newest.ts';
import type { Bench, HistoryBounds } from './kit/bench.ts';
import { HERE, OWNERS, type Says, type Told } from './kit/owned-process.ts';
import { Relays } from './kit/owned-relays.ts';
import { nodeContract } from './nodes.ts';
import { waiterContract } from './waiters.ts';

const PARTITIONS = 3;

const child = fork(join(import.meta.dirname, 'kit', 'owned-process.ts'), { execArgv: ['--no-warnings'] });
afterAll(() => void child.disconnect());

type Listener = { text(from: string, text: string): void; mail(nodeId: string, text: string): void };

const benches = new Map<number, Listener>();
const calls = new Map<number, (value: unknown) => void>();
let lastCall = 0;
let lastBench = 0;

child.on('message', (said: Says) => {
  const bench = benches.get(said.bench);
  if (said.kind === 'done') calls.get(said.call)?.(decode(said.value));
  else if (said.kind === 'mail') bench?.mail(said.nodeId, said.text);
  else bench?.text(said.from, said.text);
});

const tell = (told: Told): void => void child.send(told);

function call(make: (call: number) => Told): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const id = ++lastCall;
  calls.set(id, (value) => {
    calls.delete(id);
    resolve(value);
  });
  tell(make(id));
  return promise;
}

async function open(history: HistoryBounds = {}): Promise<Bench> {
  const bench = ++lastBench;
  tell({ bench, kind: 'open', partitions: PARTITIONS, history });
  const clock = new FakeClock();
  const listener: Listener = { text() {}, mail: (nodeId, text) => relays.receive(nodeId, text) };
  const relays = new Relays({
    ...{ clock, requestClock: new FakeClock(), partitions: PARTITIONS, memory: { history } },
    join: () => ({
      send: (to, text) => tell({ bench, kind: 'text', to, text }),
      // Repeats find what is lost.
      onLoss() {},
      onText: (receive) => void (listener.text = receive),
    }),
    mail: (_nodeId, deliver) => deliver(),
  });
  benches.set(bench, listener);
  const backend = relays.open(HERE);
  relays.giveAll(OWNERS);
  return {
    backend: { ...backend, ...whole(backend, bench) },
    async advance(ms) {
      await call((id) => ({ bench, kind: 'advance', ms, call: id }));
      await clock.advance(ms);
    },
    now: () => clock.now(),
    setBack(ms) {
      tell({ bench, kind: 'back', ms });
      clock.stepWall(-ms);
    },
    async close() {
      tell({ bench, kind: 'close' });
      benches.delete(bench);
      await backend.close();
    },
  };
}

/** The nodes of this process, known to the other one; and what the relays there find in their own partitions. */
function whole({ nodes, inspector }: Backend, bench: number): Pick<Backend, 'nodes' | 'inspector'> {
  return {
    nodes: {
      ...nodes,
      async attach(nodeId, listener) {
        const detach = await nodes.attach(nodeId, listener);
        tell({ bench, kind: 'node', nodeId, attached: true });
        return () => {
          detach();
          tell({ bench, kind: 'node', nodeId, attached: false });
        };
      },
      due: async (limit) => (await call((id) => ({ bench, kind: 'due', limit, call: id }))) as readonly CommandKey[],
    },
    inspector: {
      ...inspector,
      reservedScopes: async () =>
        (await call((id) => ({ bench, kind: 'reserved', call: id }))) as readonly ReservedScope[],
    },
  };
}

const name = 'partitions of another process';
// There are fewer random runs than in memory alone, which decides the same.
const RUNS = 10;
storeContracts(name, open, RUNS);
awayPauseContract(name, () => open());
commandContract(name, () => open());
commandModel(name, () => open(), 20);
waiterContract(name, () => open());
nodeContract(name, () => open());
inspectorContract(name, () => open());
newestContract(name, () => open());
