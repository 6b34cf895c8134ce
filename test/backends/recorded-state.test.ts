/** Tests that a state is put back from the facts of any log, with the attempts by which commands were dispatched. */
import { describe, expect, it } from 'vitest';
import type { FactLog } from '../../src/backends/journal/log.ts';
import { RecordRoom } from '../../src/backends/journal/room.ts';
import { Snapshots } from '../../src/backends/journal/snapshot.ts';
import { RecordedState } from '../../src/backends/journal/state.ts';
import type { AdmitResult, DispatchResult } from '../../src/core/commands/command-store.ts';
import { ANY_CONNECTION } from '../../src/core/connections/connection-filter.ts';
import { FORGET_MS } from '../../src/core/limits.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto, systemLoop } from '../../src/platform/system.ts';
import { ALICE, BOUND, admission, keyFor } from '../contract/kit/bench.ts';
import { hello } from '../contract/kit/connections-model.ts';
import { FakeClock } from '../kit/clock.ts';

/** A log in memory: the batches of facts, and the pieces of the latest snapshot. */
class MemoryLog implements FactLog {
  readonly full = false;
  readonly crowded = false;
  readonly batches: string[] = [];
  pieces: readonly string[] = [];
  readonly state: RecordedState;

  constructor(state: RecordedState) {
    this.state = state;
  }

  flush(): void {
    this.batches.push(this.state.records.take());
  }

  beginSnapshot() {
    this.flush();
    this.state.records.beginFile();
    this.batches.length = 0;
    const pieces: string[] = [];
    return {
      get size() {
        return pieces.join('').length;
      },
      append: (text: string) => void pieces.push(text),
      commit: async () => void (this.pieces = pieces),
      discard() {},
    };
  }
}

const clock = new FakeClock();

function open() {
  const room = new RecordRoom();
  const { sha256 } = createCrypto('test');
  const state = new RecordedState({ clock, log: silentLog, sha256, room, markSecret: 'x', keepsAttempts: true });
  return { room, state };
}

function putBack({ pieces, batches }: MemoryLog): RecordedState {
  const { state } = open();
  for (const piece of pieces) state.replay.batch(Buffer.from(piece));
  state.replay.endSnapshot();
  for (const batch of batches) state.replay.batch(Buffer.from(batch));
  state.begin();
  return state;
}

describe.each(['the log', 'a snapshot', 'a snapshot and the log after it'])(
  'a state that is put back from %s',
  (from) => {
    it('gives a repeated attempt, and a repeated admission, the answer that was lost', async () => {
      const { state, room } = open();
      state.begin();
      const log = new MemoryLog(state);
      const snapshots = new Snapshots({
        ...{ log, room, tables: state.tables, clock, loop: systemLoop, logger: silentLog, tickets: new Map() },
      });
      const { commands } = state.ports;
      await commands.rebind(ALICE, BOUND, 'up');
      const claimed = admission('c1', { chosenId: false, claim: { binding: BOUND, attempt: '1' } });
      const first = await commands.admit(claimed);
      if (from === 'a snapshot and the log after it') await snapshots.write();
      await commands.admit(admission('c2'));
      const second = await commands.dispatch(keyFor('c2'), BOUND, '2');
      if (from === 'a snapshot') await snapshots.write();
      log.flush();
      snapshots.stop();
      expect([first.kind, second.kind]).toEqual(['admitted', 'dispatch']);

      const { commands: again, ...ports } = putBack(log).ports;
      expect(ports.connections).toBeDefined();
      // A snapshot keeps no bindings, so the link is bound again, which is another version of its commands.
      if (from !== 'the log') await again.rebind(ALICE, BOUND, 'up');
      expect(answerOf(await again.dispatch(keyFor('c2'), BOUND, '2'))).toEqual(answerOf(second));
      const repeated = await again.admit({ ...claimed, repeated: true });
      expect(repeated.kind).toBe('admitted');
      expect(answerOf(dispatchIn(repeated))).toEqual(answerOf(dispatchIn(first)));
      expect(await again.dispatch(keyFor('c2'), BOUND, '3')).toEqual({ kind: 'skip' });
    });
  },
);

it('takes nothing for lost that was dispatched on the link whose binding is repeated', async () => {
  const { state } = open();
  state.begin();
  const { commands } = state.ports;
  const received = new Set<string>();
  await commands.rebind(ALICE, BOUND, 'up');
  await commands.admit(admission('before'));
  await commands.dispatch(keyFor('before'), BOUND, '1');
  const next = { ...BOUND, epoch: BOUND.epoch + 1 };
  const first = await commands.rebind(ALICE, next, 'up', received);
  expect(first.unreceived?.again.map(({ command }) => command.commandId)).toEqual(['before']);
  await commands.admit(admission('since'));
  await commands.dispatch(keyFor('since'), next, '1');
  // Its answer was lost: what is to be written again is told again.
  const repeated = await commands.rebind(ALICE, next, 'up', received);
  expect(repeated.unreceived?.again.map(({ command }) => command.commandId)).toEqual(['before']);
  expect(repeated.unreceived?.ended).toEqual([]);
  expect(repeated.unfinished.map(({ commandId }) => commandId)).toEqual(['since']);
});

it('puts a link back with the end that it had first, however often it was told to have ended', async () => {
  const { state } = open();
  state.begin();
  const log = new MemoryLog(state);
  const { connection } = await state.ports.connections.connect(hello('alice', 'tab'));
  await state.ports.connections.disconnect(ALICE, connection.epoch, 'node_lost');
  await state.ports.connections.disconnect(ALICE, connection.epoch, 'reset');
  log.flush();
  const again = putBack(log);
  again.replay.finish(clock.now());
  const [found] = await again.ports.connections.get([ALICE]);
  expect(found?.disconnectCause).toBe('node_lost');
  expect(found).toEqual((await state.ports.connections.get([ALICE]))[0]);
});

it('forgets each lost link that was put back when its time is over, whatever the order of the clients', async () => {
  const { state } = open();
  state.begin();
  const log = new MemoryLog(state);
  const { connections } = state.ports;
  const [first, second] = [
    await connections.connect(hello('alice', 'tab')),
    await connections.connect(hello('bob', 'tab')),
  ];
  await connections.disconnect(second.connection, second.connection.epoch, 'reset');
  await clock.advance(10_000);
  await connections.disconnect(first.connection, first.connection.epoch, 'reset');
  log.flush();
  const again = putBack(log);
  again.replay.finish(clock.now());
  await clock.advance(FORGET_MS - 10_000);
  const { rows } = await again.ports.connections.list(ANY_CONNECTION, { first: 10, after: null });
  expect(rows.map(({ row }) => row.userId)).toEqual(['alice']);
});

function dispatchIn(answer: AdmitResult): DispatchResult | undefined {
  return answer.kind === 'admitted' ? answer.dispatch : undefined;
}

function answerOf(answer: DispatchResult | undefined): unknown {
  return answer?.kind === 'dispatch' ? { ...answer, command: { ...answer.command, version: 0 } } : answer;
}
