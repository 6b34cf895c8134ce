/** Tests that the judge of snapshots notices what a snapshot lacks. */
import { expect, it } from 'vitest';
import type { Replaced } from '../../faults/simulate/log-service.ts';
import { SnapshotJudge } from '../../faults/simulate/snapshots.ts';
import { silentLog } from '../../src/core/ports.ts';
import type { FactLog } from '../../src/backends/journal/log.ts';
import { RecordRoom } from '../../src/backends/journal/room.ts';
import { Snapshots } from '../../src/backends/journal/snapshot.ts';
import { RecordedState } from '../../src/backends/journal/state.ts';
import { createCrypto, systemLoop } from '../../src/platform/system.ts';
import { admission } from '../contract/kit/bench.ts';
import { FakeClock } from '../kit/clock.ts';

const clock = new FakeClock();
const NOW = clock.now() + 1_000;

/** Makes a snapshot of a state with two commands, and what it takes the place of. */
async function snapshotOfTwo(): Promise<Replaced> {
  const room = new RecordRoom();
  const { sha256 } = createCrypto('test');
  const state = new RecordedState({ clock, log: silentLog, sha256, room, markSecret: 'x', keepsAttempts: true });
  state.begin();
  await state.ports.commands.admit(admission('c1', { connectWithinMs: 30_000 }));
  await state.ports.commands.admit(admission('c2', { connectWithinMs: 30_000 }));
  const batches = [[1, state.records.take()]] as const;
  const pieces: string[] = [];
  const log: FactLog = {
    full: false,
    crowded: false,
    beginSnapshot: () => ({ size: 0, append: (text) => void pieces.push(text), commit: async () => {}, discard() {} }),
  };
  const { tables } = state;
  await new Snapshots({
    log,
    room,
    tables,
    clock,
    loop: systemLoop,
    logger: silentLog,
    tickets: new Map(),
    nodes: new Map(),
  }).write();
  return { log: 'log', before: [], after: pieces, batches, number: 1 };
}

async function faultsOf(replaced: Replaced, isAfterLoss = false): Promise<readonly string[]> {
  const judge = new SnapshotJudge(() => NOW);
  if (isAfterLoss) judge.noteLoss();
  judge.note(replaced);
  return judge.judge();
}

it('finds nothing in a snapshot that says what the log says', async () => {
  expect(await faultsOf(await snapshotOfTwo())).toEqual([]);
});

it('names what a snapshot lacks, and what it has too much', async () => {
  const whole = await snapshotOfTwo();
  const lacking = { ...whole, after: whole.after.map((piece) => piece.replace('"c2"', '"c3"')) };
  expect(await faultsOf(lacking)).toEqual([expect.stringMatching(/the log gives .*"c2".* and the snapshot .*"c3"/)]);
  expect(await faultsOf({ ...whole, batches: [] })).toHaveLength(1);
});

it('does not judge right after a loss, when a snapshot may know more than the log', async () => {
  const whole = await snapshotOfTwo();
  expect(await faultsOf({ ...whole, batches: [] }, true)).toEqual([]);
});
