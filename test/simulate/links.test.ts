/**
 * Tests the simulation of links: the client libraries and the gateway over simulated connections agree in what ran, and
 * the judges notice if they do not.
 */
import { Buffer } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import {
  faultsOf,
  frameWatch,
  progressWatch,
  timeFaultsOf,
  type Call,
  type Run,
  type Told,
} from '../../faults/simulate/ledger.ts';
import type { Operation } from '../../faults/simulate/linearize.ts';
import { LinkNetwork, type Connection, type Door } from '../../faults/simulate/link-network.ts';
import { planOf } from '../../faults/simulate/plan.ts';
import { SimulatedProcess } from '../../faults/simulate/process.ts';
import { Simulation } from '../../faults/simulate/virtual.ts';
import { STORES, runPlan } from '../../faults/simulate/workloads.ts';
import type { SocketLike } from '../../src/clients/link/platform.ts';
import type { MessageSocket, SocketHandler } from '../../src/gateway/socket.ts';

const runOf = (seed: number, steps: number) =>
  runPlan(planOf({ seed, nodes: 3, steps }, STORES.owned.faults), { acts: 'calls', store: 'owned' });

describe('links over simulated connections', () => {
  it.each([1, 2, 3, 4, 5])('run no call twice, and tell no caller what is not so: seed %i', async (seed) => {
    const verdict = await runOf(seed, 160);
    expect(verdict.broken).toEqual([]);
    expect(verdict.acknowledged).toBeGreaterThan(150);
    expect(verdict.steps.loaded).toBeGreaterThan(0.3 * verdict.steps.all);
    expect(Object.keys(verdict.seen).filter((what) => what.startsWith('trouble: ')).length).toBeGreaterThan(2);
  });

  it('are the same for the same seed', async () => {
    const [one, again] = [await runOf(7, 60), await runOf(7, 60)];
    expect(again).toEqual(one);
  });
});

/** A relay's end whose events are written down. */
class Received implements SocketHandler {
  readonly events: string[] = [];
  socket: MessageSocket | null = null;
  message = (data: unknown): void => void this.events.push((data as Buffer).toString());
  control(): void {}
  unreadable(): void {}
  failed(): void {}
  ending = (code: number | null): void => void this.events.push(`ending ${code}`);
  gone = (): void => void this.events.push(`gone ${this.socket?.errored?.message ?? ''}`.trim());
  closing(): void {}
  behind(): void {}
}

/** A program with a socket to a relay. `record`: lets the bytes out that the relay has written since the last call. */
async function connected({ held = false } = {}) {
  const simulation = new Simulation(1);
  const [relay, machine] = [new SimulatedProcess(simulation, 'relay'), new SimulatedProcess(simulation, 'program')];
  const received = new Received();
  let waiting: (() => void)[] = [];
  const door: Door = {
    process: relay,
    accept(socket) {
      received.socket = socket;
      socket.tell(received);
      return true;
    },
    onRecord: (run) => void (held ? waiting.push(run) : run()),
  };
  const network = new LinkNetwork(simulation, () => [door]);
  const texts: string[] = [];
  const socket: SocketLike = new (network.socketsOf(machine, () => (text) => void texts.push(text)))(
    'ws://relays/connect',
    '',
  );
  const closes: (number | undefined)[] = [];
  socket.addEventListener('close', ({ code }) => closes.push(code));
  await simulation.run(20);
  const record = (): void => {
    const ready = waiting;
    waiting = [];
    for (const run of ready) run();
  };
  record();
  await simulation.run(20);
  const end = received.socket;
  if (!end) throw new Error('no connection arrived');
  const connection = (): Connection => {
    const [one] = network.open;
    if (!one) throw new Error('no connection is open');
    return one;
  };
  return { simulation, relay, machine, network, connection, socket, end, received, texts, closes, record };
}

describe('a simulated connection', () => {
  it('carries messages in order, also those that stalled and those of a paused process', async () => {
    const { simulation, machine, connection, end, socket, texts, received } = await connected();
    const { down } = connection();
    down.isStalled = true;
    end.sendAll(['1', '2']);
    await simulation.run(50);
    expect(texts).toEqual([]);
    machine.pause();
    down.goOn();
    end.sendAll(['3']);
    await simulation.run(50);
    expect(texts).toEqual([]);
    machine.resume();
    socket.send('up');
    end.sendAll(['4']);
    await simulation.run(50);
    expect(texts).toEqual(['1', '2', '3', '4']);
    expect(received.events).toEqual(['up']);
  });

  it('writes nothing before what it depends on is recorded, and counts it as unread', async () => {
    const { simulation, end, texts, record } = await connected({ held: true });
    end.sendAll(['welcome']);
    await simulation.run(50);
    expect([texts, end.bufferedAmount]).toEqual([[], 'welcome'.length]);
    record();
    await simulation.run(50);
    expect([texts, end.bufferedAmount]).toEqual([['welcome'], 0]);
  });

  it('closes by a handshake, whoever begins', async () => {
    const one = await connected();
    one.socket.close(1000);
    await one.simulation.run(50);
    expect([one.received.events, one.closes]).toEqual([['ending 1000', 'gone'], [1000]]);
    const other = await connected();
    other.end.close(4409, 'replaced');
    await other.simulation.run(50);
    expect([other.received.events, other.closes]).toEqual([['ending 4409', 'ending 4409', 'gone'], [4409]]);
  });

  it('may end at one side only: the other one believes in it, and what it sends is lost', async () => {
    const { simulation, network, connection, end, texts, closes, received } = await connected();
    connection().break('program', true);
    await simulation.run(50);
    end.sendAll(['lost']);
    await simulation.run(100);
    expect([closes, received.events, texts]).toEqual([[1006], [], []]);
    network.heal();
    await simulation.run(50);
    expect(received.events).toEqual(['gone read ECONNRESET']);
  });

  it('waits for a slow reader, and tells when it has caught up', async () => {
    const { simulation, connection, end, texts } = await connected();
    let drained = 0;
    end.onDrain(() => drained++);
    connection().slow(60_000);
    const sent = Array.from({ length: 5 }, (_, i) => `${i} ${'x'.repeat(100)}`);
    end.sendAll(sent);
    expect(end.bufferedAmount).toBeGreaterThan(1024 * 1024);
    await simulation.run(60_000);
    expect([texts, end.bufferedAmount, drained]).toEqual([sent, 0, 1]);
  });
});

const WORK = { ms: 1, steps: 3, fails: false, isStubborn: false, chars: 1 };
const RUN: Run = { by: 'client', reports: 3, end: { kind: 'completed', value: { did: 'c1' } } };
const TOLD: Told = {
  ...{ outcome: 'completed', execution: 'reported_by_client', code: null, message: null, value: { did: 'c1' } },
};
const EXPIRED: Told = { ...TOLD, outcome: 'expired', execution: 'not_written', code: 'connect_timeout', value: null };
const callOf = (runs: readonly Run[], told: readonly Told[]): Call => ({
  ...{ userId: 'alice', commandId: 'c1', work: WORK, contextId: null, askedAt: 0, toldAt: 1, open: 0, heard: 0 },
  ...{ runs: [...runs], told: [...told], history: [] },
  times: { connectWithinMs: 1, respondWithinMs: 1 },
});

describe('the ledger', () => {
  it('agrees with what is so', () => {
    expect(faultsOf(callOf([RUN], [TOLD, TOLD]))).toEqual([]);
    expect(faultsOf(callOf([], [EXPIRED]))).toEqual([]);
    expect(faultsOf(callOf([], [{ ...TOLD, outcome: 'failed', execution: 'refused_by_client' }]))).toEqual([]);
    expect(faultsOf(callOf([RUN], [{ ...TOLD, outcome: 'outcome_unknown', execution: 'may_have_run' }]))).toEqual([]);
  });

  it.each<readonly [what: string, runs: readonly Run[], told: readonly Told[]]>([
    ['ran 2 times, by client and client', [RUN, RUN], [TOLD]],
    ['was told as completed and expired', [], [{ ...TOLD, execution: 'may_have_run' }, EXPIRED]],
    ['is expired (not_written, connect_timeout), and ran', [RUN], [EXPIRED]],
    ['is completed (reported_by_client, null), and never ran', [], [TOLD]],
    ['is told as completed, and its handler has not ended', [{ ...RUN, end: null }], [TOLD]],
    ['is told as completed, and its handler has failed', [{ ...RUN, end: { kind: 'failed', message: '' } }], [TOLD]],
    ['returned {"did":"c1"}, and its caller got {"did":"c2"}', [RUN], [{ ...TOLD, value: { did: 'c2' } }]],
  ])('notices that a call %s', (what, runs, told) => {
    expect(faultsOf(callOf(runs, told))).toEqual([`c1 ${what}`]);
  });

  it('notices an end before its time, and a handler after its deadline', () => {
    const told = (to: number): Operation => ({
      from: 0,
      to,
      may: null,
      claim: { kind: 'told', end: { ...EXPIRED, value: null } },
    });
    const begun = (to: number): Operation => ({ from: to, to, may: null, claim: { kind: 'begun' } });
    const view = {
      stage: 'dispatched',
      end: null,
      isCancelRequested: false,
      late: 0,
      version: 2,
      deadline: 9_000,
    } as const;
    const read: Operation = { from: 1, to: 2, may: null, claim: { kind: 'read', view } };
    const times = { connectWithinMs: 8_000, respondWithinMs: 15_000 };
    const of = (...history: Operation[]): readonly string[] => timeFaultsOf({ ...callOf([], []), times, history }, 0);
    expect([of(told(7_500)), of(begun(10_000), read), of(begun(20_000))]).toEqual([[], [], []]);
    expect(of(told(5_000))).toEqual(['c1 is over its time of 8000 ms after 5000']);
    expect(of(begun(12_000), read)).toEqual(['c1 begins 3000 ms after its deadline']);
  });

  it('notices progress that is out of order, or missing without a word', () => {
    const faults: string[] = [];
    const watch = progressWatch(callOf([RUN], []), (fault) => faults.push(fault));
    watch({ step: 2 }, 2, 1);
    expect(faults).toEqual([]);
    watch({ step: 1 }, 1, 0);
    watch({ step: 4 }, 4, 0);
    expect(faults).toEqual([
      'c1: progress 1 after 2 is out of order',
      'c1: progress 4 after 2 is said to have missed 0',
      'c1: progress 4 after 2, of 3 reports',
    ]);
  });

  it('notices frames that may not come where they come', () => {
    const faultsAfter = (...texts: readonly string[]): readonly string[] => {
      const faults: string[] = [];
      const watch = frameWatch((fault) => faults.push(fault.split(':')[0] ?? ''));
      for (const text of texts) watch(text);
      return faults;
    };
    const welcome = JSON.stringify({
      ...{ type: 'welcome', node_id: 'n1', ping_ms: 1, dead_ms: 1, max_frame_bytes: 1, in_flight: 1, at_ms: 0 },
    });
    const command = '{"type":"command","command_id":"c1","action":"a","remaining_ms":1,"at_ms":5}';
    const outcome = '{"type":"outcome","ref":"r1","command_id":"c1","stage":"terminal","execution":"may_have_run"}';
    const stage = '{"type":"stage","ref":"r1","command_id":"c1","stage":"queued"}';
    expect(faultsAfter(welcome, command, stage, outcome)).toEqual([]);
    expect(faultsAfter(command)).toEqual(['a frame comes before welcome']);
    expect(faultsAfter(welcome, command, command)).toEqual(['a command comes twice']);
    expect(faultsAfter(welcome, command, '{"type":"ping","at_ms":4}')).toEqual(['at_ms goes back from 5']);
    expect(faultsAfter(welcome, outcome, stage)).toEqual(['a frame comes after the answer']);
    expect(faultsAfter(welcome, '{"type":"closed"}', command)).toEqual(['a command comes after closed']);
  });
});
