/**
 * The form of the records of a journal. A record is one act: its time, and the facts that it decided. A fact says the
 * resulting state, so that putting it back twice, or over a later state, changes nothing.
 */
import type { Command, CommandCaller, Sighting } from '../../core/commands/command.ts';
import type { CommandKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';

/** Ends a record, and precedes each payload in it. Neither character occurs in JSON. */
const RECORD = '\x1e';
const FIELD = '\x1f';
const RECORD_BYTE = 0x1e;
const FIELD_BYTE = 0x1f;

/** The payload number of a payload that is null. */
const NONE = -1;

/** A record as it is read: the time of the act, its facts and their arguments one after another, and the payloads. */
export type ReadAct = {
  readonly at: number;
  readonly facts: readonly unknown[];
  readonly payloads: readonly JsonText[];
};

/**
 * Collects the records of acts until they are written. `begin` ends the act before it. `onFirst` is called with the
 * first fact after `take`.
 */
export class ActWriter {
  readonly #onFirst: () => void;
  #at = 0;
  #facts: unknown[] = [];
  #payloads: JsonText[] = [];
  #key: CommandKey | null = null;
  #text = '';
  #idle = true;

  constructor(onFirst: () => void) {
    this.#onFirst = onFirst;
  }

  /** The time of the current act. Times in facts about commands are relative to it. */
  get at(): number {
    return this.#at;
  }

  begin(at: number): void {
    if (this.#facts.length > 0) this.#end();
    this.#at = at;
    this.#key = null;
  }

  /** Adds a fact, and returns the index of its last argument, for `set`. */
  add(...fact: readonly unknown[]): number {
    if (this.#idle) {
      this.#idle = false;
      this.#onFirst();
    }
    this.#facts.push(...fact);
    return this.#facts.length - 1;
  }

  /** Adds a fact about a command. */
  addOf({ userId, clientId, commandId }: CommandKey, ...fact: readonly unknown[]): number {
    const key = this.#key;
    if (!key || key.commandId !== commandId || key.clientId !== clientId || key.userId !== userId) {
      this.#key = { userId, clientId, commandId };
      this.add('@', userId, clientId, commandId);
    }
    return this.add(...fact);
  }

  /** Replaces an argument that was not known before. */
  set(index: number, value: unknown): void {
    this.#facts[index] = value;
  }

  /** Removes the facts of the current act: nothing was decided. */
  discard(): void {
    this.#facts = [];
    this.#payloads = [];
    this.#key = null;
  }

  /** Keeps a payload with the act, and returns its number. A payload that is given twice in a row is kept once. */
  payload(text: JsonText | null): number {
    if (text === null) return NONE;
    if (this.#payloads.at(-1) !== text) this.#payloads.push(text);
    return this.#payloads.length - 1;
  }

  /** Ends the current act and returns all records since the last call; '' if there are none. */
  take(): string {
    if (this.#facts.length > 0) this.#end();
    const text = this.#text;
    this.#text = '';
    this.#idle = true;
    return text;
  }

  /** The length of the records since the last `take`, without the current act. */
  get length(): number {
    return this.#text.length;
  }

  #end(): void {
    this.#text += JSON.stringify([this.#at, ...this.#facts]);
    for (const payload of this.#payloads) this.#text += FIELD + payload;
    this.#text += RECORD;
    this.discard();
  }
}

/**
 * Reads the records of a batch. Texts are cut from the buffer and not from one large string, which each of them would
 * keep in memory.
 */
export function* readActs(body: Buffer): Generator<ReadAct> {
  let field = body.indexOf(FIELD_BYTE);
  for (let start = 0; start < body.length;) {
    const end = body.indexOf(RECORD_BYTE, start);
    if (end < 0) throw new Error('a record has no end');
    const payloads: JsonText[] = [];
    let cut = end;
    if (field >= 0 && field < end) {
      cut = field;
      while (field >= 0 && field < end) {
        const next = body.indexOf(FIELD_BYTE, field + 1);
        payloads.push(body.toString('utf8', field + 1, next < 0 || next > end ? end : next) as JsonText);
        field = next;
      }
    }
    const [at, ...facts] = JSON.parse(body.toString('utf8', start, cut)) as [number, ...unknown[]];
    yield { at, facts, payloads };
    start = end + 1;
  }
}

// Records of commands, as differences to the record before.

/**
 * The members of a command that its key does not have. A member's number in records is its index here, so members are
 * only appended, and none is ever removed.
 */
const MEMBERS = [
  ...(['version', 'stage', 'lastProvenStage', 'outcome', 'execution', 'error', 'reason', 'attempts'] as const),
  ...(['action', 'scopeId', 'digest', 'namedInstanceId', 'clientType', 'caller', 'callSpan'] as const),
  ...(['traceId', 'parentSpanId', 'traceFlags', 'traceState'] as const),
  ...(['expectedInstanceId', 'boundInstanceId', 'nodeId', 'recoveredFromNodeId'] as const),
  ...(['admittedAt', 'queuedAt', 'dispatchedAt', 'acknowledgedAt', 'terminalAt', 'cancelRequestedAt'] as const),
  ...(['connectDeadline', 'deadline', 'lateResults', 'firstLate', 'resultExpired', 'sightings'] as const),
] as const satisfies readonly (keyof Command)[];

type Member = (typeof MEMBERS)[number];
/** Does not compile if a member of a command is missing in MEMBERS. */
const ALL: Exclude<keyof Command, Member | keyof CommandKey> extends never ? true : never = true;

const TIMES: ReadonlySet<Member> = new Set(
  ALL && [
    ...(['admittedAt', 'queuedAt', 'dispatchedAt', 'acknowledgedAt', 'terminalAt', 'cancelRequestedAt'] as const),
    ...(['connectDeadline', 'deadline'] as const),
  ],
);
const IS_TIME: readonly boolean[] = MEMBERS.map((member) => TIMES.has(member));

/** The record that the difference of a new command begins from. */
export const NEW_COMMAND: Command = {
  ...{ userId: '', clientId: '', commandId: '', version: 0, action: '', scopeId: '', digest: '' },
  ...{ stage: 'queued', lastProvenStage: 'queued', outcome: null, execution: 'not_written', error: null },
  ...{ reason: null, attempts: 0, namedInstanceId: null, clientType: null, expectedInstanceId: null },
  ...{ boundInstanceId: null, nodeId: null, recoveredFromNodeId: null, caller: { kind: 'user', name: '' } },
  ...{ callSpan: null, traceId: null, parentSpanId: null, traceFlags: null, traceState: null, admittedAt: 0 },
  ...{ queuedAt: null, dispatchedAt: null, acknowledgedAt: null, terminalAt: null, cancelRequestedAt: null },
  ...{ connectDeadline: 0, deadline: 0, lateResults: 0, firstLate: null, resultExpired: false, sightings: [] },
};

/** Returns the members that differ, each as its number and its value. */
export function differenceOf(before: Command, after: Command, at: number): readonly unknown[] {
  const found: unknown[] = [];
  for (let i = 0; i < MEMBERS.length; i++) {
    const member = MEMBERS[i] as Member;
    const value = after[member];
    if (value === before[member]) continue;
    if (IS_TIME[i]) found.push(i, value === null ? null : (value as number) - at);
    else if (member === 'sightings') {
      if (after.sightings.length + before.sightings.length > 0) found.push(i, packSightings(after, at));
    } else if (member === 'caller') found.push(i, [after.caller.kind, after.caller.name]);
    else found.push(i, value);
  }
  return found;
}

/** Returns the version of the record that a difference leads to. */
export function versionOf(difference: readonly unknown[]): number {
  return difference[0] === 0 ? Number(difference[1]) : 0;
}

/** Applies a difference. `intern` returns one string for equal strings, which many records share. */
export function applyDifference(
  before: Command,
  difference: readonly unknown[],
  { at, intern }: { readonly at: number; readonly intern: Interned },
): Command {
  const after: Record<string, unknown> = { ...before };
  for (let i = 0; i < difference.length; i += 2) {
    const number = difference[i] as number;
    const member = MEMBERS[number];
    const value = difference[i + 1];
    // A record of a later version of the relay is refused before it is read.
    if (member === undefined) throw new Error(`a command has no member ${number}`);
    if (IS_TIME[number]) after[member] = value === null ? null : (value as number) + at;
    else if (member === 'sightings') after[member] = unpackSightings(before.commandId, value as PackedSighting[], at);
    else if (member === 'caller') after[member] = intern.caller(value as [CommandCaller['kind'], string]);
    else after[member] = typeof value === 'string' ? intern.text(value) : value;
  }
  return after as unknown as Command;
}

/** Ids begin with the id of their command most of the time; then only the rest is kept. */
type PackedId = string | readonly [string];
type PackedSighting = readonly [PackedId, number, number, number];

export function packId(commandId: string, id: string): PackedId {
  return id.startsWith(commandId) ? [id.slice(commandId.length)] : id;
}

export function unpackId(commandId: string, id: PackedId): string {
  return typeof id === 'string' ? id : [commandId, id[0]].join('');
}

function packSightings({ commandId, sightings }: Command, at: number): readonly PackedSighting[] {
  return sightings.map(({ messageId, firstSeenAt, lastSeenAt, count }) => [
    packId(commandId, messageId),
    firstSeenAt - at,
    lastSeenAt - at,
    count,
  ]);
}

function unpackSightings(commandId: string, packed: readonly PackedSighting[], at: number): readonly Sighting[] {
  return packed.map(([id, first, last, count]) => ({
    messageId: unpackId(commandId, id),
    firstSeenAt: at + first,
    lastSeenAt: at + last,
    count,
  }));
}

/** The most strings and callers that are remembered at once. */
const INTERNED = 20_000;

/** Returns the same object for equal strings, so that records that were read take no more memory than before. */
export class Interned {
  #texts = new Map<string, string>();
  #callers = new Map<string, CommandCaller>();

  text(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= INTERNED) this.#texts = new Map();
    this.#texts.set(text, text);
    return text;
  }

  caller([kind, name]: readonly [CommandCaller['kind'], string]): CommandCaller {
    const key = `${kind}/${name}`;
    const known = this.#callers.get(key);
    if (known) return known;
    if (this.#callers.size >= INTERNED) this.#callers = new Map();
    const made = { kind, name };
    this.#callers.set(key, made);
    return made;
  }
}
