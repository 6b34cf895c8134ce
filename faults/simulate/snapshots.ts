/** Judges snapshots: with the batches that follow it, each must give the state that all batches before it gave. */
import { isRecord } from '../../src/core/json.ts';
import { silentLog, type Clock, type EventLoop } from '../../src/core/ports.ts';
import type { FactLog } from '../../src/backends/journal/log.ts';
import { RecordRoom } from '../../src/backends/journal/room.ts';
import { Snapshots } from '../../src/backends/journal/snapshot.ts';
import { RecordedState } from '../../src/backends/journal/state.ts';
import { createCrypto } from '../../src/platform/system.ts';
import type { Replaced } from './log-service.ts';

/** The most snapshots of a run that are judged, because each costs two replays. */
const MOST = 12;

/** Within what time an owner appends again what the log has lost, in milliseconds. */
const REFILL_MS = 5_000;
/** The record of a result that was left out of the log for want of room: a snapshot brings it. */
const LEFT_OUT = '"no_result"';
/** When history was last looked at, which is no fact: a snapshot has it, and batches have the time of the last row. */
const LOOKED_AT = /("floors",\d+,\d+,\d+),\d+/g;

/** When a client was last seen, which no batch has. */
const SEEN_AT = /"lastSeenAt":[\d.]+,/g;

export class SnapshotJudge {
  readonly #replaced: Replaced[] = [];
  readonly #now: () => number;
  #notBefore = 0;

  /** `now`: the wall time, in epoch milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The log has lost something. Until its owner appends it again, a snapshot may know more than the log. */
  noteLoss(): void {
    this.#notBefore = this.#now() + REFILL_MS;
  }

  note(replaced: Replaced): void {
    if (this.#now() >= this.#notBefore && this.#replaced.length < MOST) this.#replaced.push(replaced);
  }

  /** Returns what differs, as texts. */
  async judge(): Promise<readonly string[]> {
    const broken: string[] = [];
    for (const { log, before, after, batches, number } of this.#replaced) {
      const texts = batches.map(([, text]) => text);
      if (texts.some((text) => text.includes(LEFT_OUT))) continue;
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
    // It puts the connections back.
    state.replay.finish(state.replay.lastAt);
    // A client that acknowledges a command gives its params up, which no batch says.
    for (const { running } of state.tables.ledger.clients())
      for (const entry of running) if (entry.params !== null) entry.giveUpParams();
    const { tickets, nodes } = state.replay;
    const log = new Dump();
    await new Snapshots({ log, room, tables: state.tables, clock, loop, logger: silentLog, tickets, nodes }).write();
    return withSortedSessions(withoutNumbers(log.text)).replace(LOOKED_AT, '$1').replaceAll(SEEN_AT, '');
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

/** Writes each list of actions where it is used: equal lists may be one object or two, which have a number each. */
function withoutNumbers(text: string): string {
  const lists = new Map<unknown, unknown>();
  const records = text.split('\x1e').map((record) => {
    const [head = '', ...payloads] = record.split('\x1f');
    if (head === '') return record;
    const facts: unknown[] = JSON.parse(head);
    for (let i = 1; i + 2 < facts.length; i++) {
      if (facts[i] === 'actions' && Array.isArray(facts[i + 2])) {
        lists.set(facts[i + 1], facts[i + 2]);
        facts.splice(i--, 3);
      } else if (facts[i] === 'connected') facts[i + 2] = lists.get(facts[i + 2]) ?? null;
    }
    return [JSON.stringify(facts), ...payloads].join('\x1f');
  });
  return records.join('\x1e');
}

/** Writes sessions in the order of their ids: their order in a table is that of their last changes, and means nothing. */
function withSortedSessions(text: string): string {
  const records = text.split('\x1e').map((record) => {
    const [head = '', ...payloads] = record.split('\x1f');
    const facts: unknown[] = head === '' ? [] : JSON.parse(head);
    const places = facts.flatMap((fact, i) => (fact === 'session' && isRecord(facts[i + 1]) ? [i] : []));
    return { facts, payloads, places };
  });
  const idOf = ([session]: readonly unknown[]): string => String(isRecord(session) && session['sessionId']);
  const sessions = records
    .flatMap(({ facts, places }) => places.map((i) => facts.slice(i + 1, i + 3)))
    .toSorted((one, other) => idOf(one).localeCompare(idOf(other)));
  for (const { facts, places } of records) for (const i of places) facts.splice(i + 1, 2, ...(sessions.shift() ?? []));
  return records
    .map(({ facts, payloads }) => [facts.length === 0 ? '' : JSON.stringify(facts), ...payloads].join('\x1f'))
    .join('\x1e');
}

/** How many characters before and after the first difference of two texts are shown. */
const AROUND = 80;

/** Says where two texts differ first, for people; null if they are equal. */
function firstDifference(one: string, other: string): string | null {
  if (one === other) return null;
  let at = 0;
  while (one[at] === other[at]) at++;
  const around = (text: string): string => text.slice(Math.max(0, at - AROUND), at + AROUND);
  return `the log gives ${around(one)}, and the snapshot ${around(other)}`;
}
