/** Judges snapshots: with the batches that follow it, each must give the state that all batches before it gave. */
import { silentLog, type Clock, type EventLoop } from '../../src/core/ports.ts';
import type { FactLog } from '../../src/backends/journal/log.ts';
import { RecordRoom } from '../../src/backends/journal/room.ts';
import { Snapshots } from '../../src/backends/journal/snapshot.ts';
import { RecordedState } from '../../src/backends/journal/state.ts';
import { createCrypto } from '../../src/platform/system.ts';
import type { Replaced } from './log-service.ts';

/** The most snapshots of a run that are judged, because each costs two replays. */
const MOST = 12;

export class SnapshotJudge {
  readonly #replaced: Replaced[] = [];
  readonly #now: () => number;
  /** How many snapshots there were. */
  count = 0;

  /** `now`: the wall time, in epoch milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  note(replaced: Replaced): void {
    this.count++;
    if (this.#replaced.length < MOST) this.#replaced.push(replaced);
  }

  /** Returns what differs, as texts. */
  async judge(): Promise<readonly string[]> {
    const broken: string[] = [];
    for (const { log, before, after, batches, number } of this.#replaced) {
      const texts = batches.map(([, text]) => text);
      const later = batches.filter(([one]) => one > number).map(([, text]) => text);
      const [whole, short] = await Promise.all([this.#stateOf(before, texts), this.#stateOf(after, later)]);
      const difference = firstDifference(whole, short);
      if (difference) broken.push(`the snapshot of ${log} at ${number}: ${difference}`);
    }
    return broken;
  }

  /** Puts a state back, and returns it as a snapshot writes it. */
  async #stateOf(pieces: readonly string[], batches: readonly string[]): Promise<string> {
    const clock: Clock = { now: this.#now, monotonic: () => 0, after: () => () => {}, every: () => () => {} };
    const loop: EventLoop = { atTurnEnd: queueMicrotask, afterOthers: queueMicrotask };
    const room = new RecordRoom();
    const { sha256 } = createCrypto('simulation');
    const state = new RecordedState({ clock, log: silentLog, sha256, room, markSecret: 'x', keepsAttempts: true });
    for (const piece of pieces) state.replay.batch(Buffer.from(piece));
    state.replay.endSnapshot();
    for (const batch of batches) state.replay.batch(Buffer.from(batch));
    state.begin(state.replay.lastAt);
    const { tickets, nodes } = state.replay;
    const log = new Dump();
    await new Snapshots({ log, room, tables: state.tables, clock, loop, logger: silentLog, tickets, nodes }).write();
    return log.text;
  }
}

/** A log that keeps nothing but the text of a snapshot. */
class Dump implements FactLog {
  readonly full = false;
  readonly crowded = false;
  text = '';

  beginSnapshot() {
    return { size: 0, append: (text: string) => void (this.text += text), commit: async () => {}, discard() {} };
  }
}

/** Returns the first line in which two texts differ, for people; null if they are equal. */
function firstDifference(one: string, other: string): string | null {
  if (one === other) return null;
  const [lines, others] = [one.split('\n'), other.split('\n')];
  const at = lines.findIndex((line, i) => line !== others[i]);
  return `line ${at}: the log gives ${lines[at]?.slice(0, 200)}, and the snapshot ${others[at]?.slice(0, 200)}`;
}
