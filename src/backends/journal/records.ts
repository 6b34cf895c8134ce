/**
 * The format of the records in a journal. A record is one act: its time, and the facts that the act decided. A fact
 * states the resulting state, so applying it twice, or to a later state, changes nothing.
 */
import type { CallerLabel } from '../../core/auth/caller-label.ts';
import type { Command, CommandCaller, Sighting } from '../../core/commands/command.ts';
import type { CommandMessage } from '../../core/commands/transaction.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { NewMessage } from '../../core/history/message.ts';
import type { CommandKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';
import type { BatchName } from './batches.ts';
import type { EndingAct, Room } from './room.ts';

/** RECORD ends a record, and FIELD precedes each payload in it. Neither character occurs in JSON. */
const RECORD = '\x1e';
const FIELD = '\x1f';
const RECORD_BYTE = 0x1e;
const FIELD_BYTE = 0x1f;

/** Stands for the payload number of a payload that is null. */
const NONE = -1;
/**
 * Stands for the payload number of a history row in a snapshot if the payload of the row is the result of its command.
 */
export const RESULT = -2;

/** A record as it was read: the time of the act, a flat list of the facts and their arguments, and the payloads. */
export type ReadAct = {
  readonly at: number;
  readonly facts: readonly unknown[];
  readonly payloads: readonly JsonText[];
};

/** The most facts that `join` puts into one record. */
const JOINED = 64;

/** Stands for the number of a command that later acts of the file do not refer to by a number. */
const UNNUMBERED = -1;

/** Matches texts that are the same in JSON, apart from the quotes. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Returns a value as JSON. Most texts are ids, which need no escapes and so skip `JSON.stringify`. */
export function json(value: unknown): string {
  if (typeof value === 'string') return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
  if (typeof value === 'number' || value === null) return String(value);
  return JSON.stringify(value);
}

/** The most texts in the cache of `quote`. */
const QUOTED = 10_000;
let quoted = new Map<string, string>();

/** Returns a text as JSON, from a cache. Use it for texts that many records share, such as client ids. */
export function quote(text: string | null): string {
  if (text === null) return 'null';
  const known = quoted.get(text);
  if (known !== undefined) return known;
  if (quoted.size >= QUOTED) quoted = new Map();
  const made = json(text);
  quoted.set(text, made);
  return made;
}

/**
 * Receives what is recorded. `onFirst`: called with the first fact after `take`. `onAct`: called with the length of
 * each act, in characters.
 */
type ActListener = {
  readonly onFirst: () => void;
  readonly onAct: (userId: string, chars: number) => void;
};

/** The permit of snapshots, and of records that the relay makes by itself. No user is charged for them. */
export const NO_USER: EndingAct = { userId: '' };

type Actions = Connection['actions'];

/** Collects the records of acts until `take`. `begin` ends the previous act. */
export class ActWriter {
  readonly #listener: ActListener | null;
  #userId = '';
  #begunAt = 0;
  #at = 0;
  #joined = 0;
  /** The facts of the current act, each with a comma before it. */
  #facts = '';
  /** The facts that come after the next fact; null if none are deferred. */
  #deferred: string | null = null;
  #payloads: JsonText[] = [];
  /** The command that the next fact is about. */
  #about: CommandKey | null = null;
  /** The commands that have a number in this file. */
  readonly #numbers = new Map<CommandKey, number>();
  #nextNumber = 0;
  /** The lists of actions that have a number in this file. */
  #lists = new WeakMap<Actions, number>();
  #nextList = 0;
  #text = '';
  #idle = true;
  #added = 0;

  constructor(listener: ActListener | null = null) {
    this.#listener = listener;
  }

  /** The time of the current act. Times in facts about commands are relative to it. */
  get at(): number {
    return this.#at;
  }

  /** Begins an act. `permit`: the user who is charged; an act that adds data needs a Room. */
  begin(at: number, permit: Room | EndingAct): void {
    if (this.#facts !== '') this.#end();
    this.#userId = permit.userId;
    this.#begunAt = at;
    this.#at = at;
    this.#joined = 0;
    this.#about = null;
  }

  /**
   * Like `begin`, but appends the next facts to the current record until that record has JOINED facts. Only snapshots
   * use it: their facts are no acts, and long records are read faster.
   */
  join(at: number): void {
    if (this.#facts === '' || ++this.#joined === JOINED) return this.begin(at, NO_USER);
    if (at !== this.#at) this.addText(`"at",${at - this.#begunAt}`);
    this.#at = at;
  }

  /** Begins a new file. Call it after `take`. Commands and lists of actions get new numbers. */
  beginFile(): void {
    this.#numbers.clear();
    this.#nextNumber = 0;
    this.#lists = new WeakMap();
    this.#nextList = 0;
    this.#about = null;
  }

  /** Whether the file already contains this list of actions. */
  hasActions(actions: Actions): boolean {
    return actions.length === 0 || this.#lists.has(actions);
  }

  /**
   * Adds the fact of a connection. The file contains each list of actions once, even if its client connects several
   * times.
   */
  addConnection({ actions, ...members }: Connection): void {
    this.add('connected', members, this.#numberOf(actions));
  }

  #numberOf(actions: Actions): number {
    if (actions.length === 0) return NONE;
    const known = this.#lists.get(actions);
    if (known !== undefined) return known;
    const number = this.#nextList++;
    this.#lists.set(actions, number);
    this.add('actions', number, actions);
    return number;
  }

  /** Adds a fact: its name, then its arguments. */
  add(...fact: readonly unknown[]): void {
    this.addText(fact.map(json).join(','));
  }

  /** Adds a fact that is JSON text already: its name and its arguments, separated by commas. */
  addText(fact: string): void {
    this.#added++;
    if (this.#idle) {
      this.#idle = false;
      this.#listener?.onFirst();
    }
    if (this.#deferred === null) this.#facts += `,${fact}`;
    else this.#deferred += `,${fact}`;
  }

  /**
   * Says which command the next facts of this act are about. `numbered`: whether later acts may be about the same
   * command. Those acts must pass the same object; they then refer to the command by a number, until `forget`.
   */
  about(command: CommandKey, numbered: boolean): void {
    if (this.#about === command) return;
    this.#about = command;
    this.#userId = command.userId;
    const known = this.#numbers.get(command);
    if (known !== undefined) return this.addText(`"#",${known}`);
    const { userId, clientId, commandId } = command;
    const number = numbered ? this.#nextNumber++ : UNNUMBERED;
    if (numbered) this.#numbers.set(command, number);
    this.addText(`"@",${number},${quote(userId)},${quote(clientId)},${json(commandId)}`);
  }

  /** Frees the number of a command. */
  forget(command: CommandKey): void {
    this.#numbers.delete(command);
  }

  /** Calls `run`, then `then`. The facts that `run` adds come after the facts that `then` adds. */
  deferred<T>(run: () => T, then: (result: T) => void): T {
    this.#deferred = '';
    let later = '';
    try {
      const result = run();
      later = this.#deferred;
      this.#deferred = null;
      then(result);
      return result;
    } finally {
      // If the act failed, the facts of what it dropped before are still recorded.
      later ||= this.#deferred ?? '';
      this.#deferred = null;
      this.#facts += later;
      if (later !== '') this.#about = null;
    }
  }

  /**
   * Adds a payload to the current act, and returns its number. If the same payload is added twice in a row, it is
   * stored once.
   */
  payload(text: JsonText | null): number {
    if (text === null) return NONE;
    if (this.#payloads.at(-1) !== text) this.#payloads.push(text);
    return this.#payloads.length - 1;
  }

  /** Ends the current act and returns all records since the last call; '' if there are none. */
  take(): string {
    if (this.#facts !== '') this.#end();
    const text = this.#text;
    this.#text = '';
    this.#idle = true;
    return text;
  }

  /** The length of the records since the last `take`, in characters, without the current act. */
  get length(): number {
    return this.#text.length;
  }

  /** How many facts were added so far. */
  get added(): number {
    return this.#added;
  }

  #end(): void {
    const before = this.#text.length;
    this.#text += `[${this.#begunAt}${this.#facts}]`;
    for (const payload of this.#payloads) this.#text += FIELD + payload;
    this.#text += RECORD;
    this.#listener?.onAct(this.#userId, this.#text.length - before);
    this.#facts = '';
    this.#payloads = [];
    this.#about = null;
  }
}

/**
 * The first fact of each file. `boot`: the boot of the system under which the file was written; null if the system has
 * no such id.
 */
export type Header = {
  readonly format: number;
  readonly version: string;
  readonly boot: string | null;
  readonly sync: number | 'always' | 'off';
};

/**
 * Returns the text of the first record of a file. `after` (only for a snapshot): the batch that the journal after the
 * snapshot follows.
 */
export function headOf(header: Header, at: number, after: BatchName | null = null): string {
  const records = new ActWriter();
  records.begin(at, NO_USER);
  records.add('begin', header);
  if (after) records.add('after', after.number, after.sum);
  return records.take();
}

/**
 * Reads the records of a batch. Texts are cut from the buffer, because a text cut from one large string would keep that
 * string in memory.
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
    const facts = JSON.parse(body.toString('utf8', start, cut)) as unknown[];
    const at = facts.shift() as number;
    yield { at, facts, payloads };
    start = end + 1;
  }
}

// Records of commands, as differences from the previous record.

/**
 * The members of a command, except those of its key. Records refer to a member by its index here, so a new member is
 * appended, and no member is ever removed.
 */
const MEMBERS = [
  ...(['version', 'stage', 'lastProvenStage', 'outcome', 'execution', 'error', 'reason', 'attempts'] as const),
  ...(['action', 'scopeId', 'digest', 'namedInstanceId', 'clientType', 'caller', 'callSpan'] as const),
  ...(['traceId', 'parentSpanId', 'traceFlags', 'traceState'] as const),
  ...(['expectedInstanceId', 'boundInstanceId', 'nodeId', 'recoveredFromNodeId'] as const),
  ...(['admittedAt', 'queuedAt', 'dispatchedAt', 'acknowledgedAt', 'terminalAt', 'cancelRequestedAt'] as const),
  ...(['connectDeadline', 'deadline', 'lateResults', 'firstLate', 'resultExpired', 'sightings', 'contextId'] as const),
  ...(['answeredAt', 'owedBy'] as const),
] as const satisfies readonly (keyof Command)[];

type Member = (typeof MEMBERS)[number];
/** A compile-time check that MEMBERS contains every member of a command. */
const ALL: Exclude<keyof Command, Member | keyof CommandKey> extends never ? true : never = true;

const TIMES: ReadonlySet<Member> = new Set(
  ALL && [
    ...(['admittedAt', 'queuedAt', 'dispatchedAt', 'acknowledgedAt', 'terminalAt', 'cancelRequestedAt'] as const),
    ...(['connectDeadline', 'deadline', 'answeredAt'] as const),
  ],
);
/** The members that are absent from a record if they have no value. */
const OPTIONAL: ReadonlySet<Member> = new Set(['contextId', 'answeredAt', 'owedBy']);
const IS_TIME: readonly boolean[] = MEMBERS.map((member) => TIMES.has(member));

/** The record that the difference of a new command is based on. */
export const NEW_COMMAND: Command = {
  ...{ userId: '', clientId: '', commandId: '', version: 0, action: '', scopeId: '', digest: '' },
  ...{ stage: 'queued', lastProvenStage: 'queued', outcome: null, execution: 'not_written', error: null },
  ...{ reason: null, attempts: 0, namedInstanceId: null, clientType: null, expectedInstanceId: null },
  ...{ boundInstanceId: null, nodeId: null, recoveredFromNodeId: null, caller: { kind: 'user', name: '' } },
  ...{ callSpan: null, traceId: null, parentSpanId: null, traceFlags: null, traceState: null, admittedAt: 0 },
  ...{ queuedAt: null, dispatchedAt: null, acknowledgedAt: null, terminalAt: null, cancelRequestedAt: null },
  ...{ connectDeadline: 0, deadline: 0, lateResults: 0, firstLate: null, resultExpired: false, sightings: [] },
};

/**
 * Returns the members that differ, as the text of an array that alternates numbers and values. The comparisons are
 * written out, because a loop over MEMBERS takes five times as long and every change of a command calls this function.
 */
export function differenceOf(before: Command, after: Command, at: number): string {
  const b = before;
  const a = after;
  // The version always differs and comes first, so every other member follows a comma.
  let text = `[0,${a.version}`;
  if (a.stage !== b.stage) text += `,1,"${a.stage}"`;
  if (a.lastProvenStage !== b.lastProvenStage) text += `,2,"${a.lastProvenStage}"`;
  if (a.outcome !== b.outcome) text += `,3,${quote(a.outcome)}`;
  if (a.execution !== b.execution) text += `,4,"${a.execution}"`;
  if (a.error !== b.error) text += `,5,${json(a.error)}`;
  if (a.reason !== b.reason) text += `,6,${json(a.reason)}`;
  if (a.attempts !== b.attempts) text += `,7,${a.attempts}`;
  if (a.action !== b.action) text += `,8,${quote(a.action)}`;
  if (a.scopeId !== b.scopeId) text += `,9,${quote(a.scopeId)}`;
  if (a.digest !== b.digest) text += `,10,${json(a.digest)}`;
  if (a.namedInstanceId !== b.namedInstanceId) text += `,11,${quote(a.namedInstanceId)}`;
  if (a.clientType !== b.clientType) text += `,12,${quote(a.clientType)}`;
  if (a.caller !== b.caller) text += `,13,["${a.caller.kind}",${quote(a.caller.name)}${moreOf(a.caller)}]`;
  if (a.callSpan !== b.callSpan) text += `,14,${json(a.callSpan)}`;
  if (a.traceId !== b.traceId) text += `,15,${json(a.traceId)}`;
  if (a.parentSpanId !== b.parentSpanId) text += `,16,${json(a.parentSpanId)}`;
  if (a.traceFlags !== b.traceFlags) text += `,17,${json(a.traceFlags)}`;
  if (a.traceState !== b.traceState) text += `,18,${json(a.traceState)}`;
  if (a.expectedInstanceId !== b.expectedInstanceId) text += `,19,${quote(a.expectedInstanceId)}`;
  if (a.boundInstanceId !== b.boundInstanceId) text += `,20,${quote(a.boundInstanceId)}`;
  if (a.nodeId !== b.nodeId) text += `,21,${quote(a.nodeId)}`;
  if (a.recoveredFromNodeId !== b.recoveredFromNodeId) text += `,22,${quote(a.recoveredFromNodeId)}`;
  if (a.admittedAt !== b.admittedAt) text += `,23,${a.admittedAt - at}`;
  if (a.queuedAt !== b.queuedAt) text += `,24,${since(a.queuedAt, at)}`;
  if (a.dispatchedAt !== b.dispatchedAt) text += `,25,${since(a.dispatchedAt, at)}`;
  if (a.acknowledgedAt !== b.acknowledgedAt) text += `,26,${since(a.acknowledgedAt, at)}`;
  if (a.terminalAt !== b.terminalAt) text += `,27,${since(a.terminalAt, at)}`;
  if (a.cancelRequestedAt !== b.cancelRequestedAt) text += `,28,${since(a.cancelRequestedAt, at)}`;
  if (a.connectDeadline !== b.connectDeadline) text += `,29,${a.connectDeadline - at}`;
  if (a.deadline !== b.deadline) text += `,30,${a.deadline - at}`;
  if (a.lateResults !== b.lateResults) text += `,31,${a.lateResults}`;
  if (a.firstLate !== b.firstLate) text += `,32,${json(a.firstLate)}`;
  if (a.resultExpired !== b.resultExpired) text += `,33,${a.resultExpired}`;
  if (a.sightings !== b.sightings && a.sightings.length + b.sightings.length > 0)
    text += `,34,${packedSightings(a, at)}`;
  if (a.contextId !== b.contextId) text += `,35,${json(a.contextId ?? null)}`;
  if (a.answeredAt !== b.answeredAt) text += `,36,${since(a.answeredAt ?? null, at)}`;
  if (a.owedBy !== b.owedBy) text += `,37,${json(a.owedBy ?? null)}`;
  return `${text}]`;
}

/** Returns the label and the token of a caller as the further elements of a PackedCaller. */
function moreOf({ label, token }: CommandCaller): string {
  const shown = label ? `,"${label.kind}",${quote(label.name)},${quote(label.version)}` : '';
  if (token === undefined) return shown;
  const { id, issuedAt } = token;
  // This calls `json` and not the cached `quote`, because there may be as many tokens as calls.
  return `${shown || ',0,0,0'},${json(id)},${issuedAt === null ? null : issuedAt / 1_000}`;
}

function since(time: number | null, at: number): number | null {
  return time === null ? null : time - at;
}

/** Returns the version of the record that results when the difference is applied. */
export function versionOf(difference: readonly unknown[]): number {
  return Number(difference[1]);
}

/**
 * Applies a difference. `intern` returns one shared string for equal strings, because many records contain the same
 * ones.
 */
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
    // Does not happen with records of a later version of the relay, because its files are refused before this.
    if (member === undefined) throw new Error(`a command has no member ${number}`);
    if (value === null && OPTIONAL.has(member)) delete after[member];
    else if (IS_TIME[number]) after[member] = value === null ? null : (value as number) + at;
    else if (member === 'sightings') after[member] = unpackSightings(before.commandId, value as PackedSighting[], at);
    else if (member === 'caller') after[member] = intern.caller(value as PackedCaller);
    else after[member] = typeof value === 'string' ? intern.text(value) : value;
  }
  return after as unknown as Command;
}

/** An id. If it begins with the id of its command, as most do, only the rest is stored, in an array. */
type PackedId = string | readonly [string];
type PackedSighting = readonly [PackedId, number, number, number];

/**
 * Returns a PackedId as JSON. The rest after a command's id is the same for all commands of an instance, so it mostly
 * comes from the cache.
 */
function packedId(commandId: string, id: string): string {
  return id.startsWith(commandId) ? `[${quote(id.slice(commandId.length))}]` : json(id);
}

export function unpackId(commandId: string, id: PackedId): string {
  return typeof id === 'string' ? id : [commandId, id[0]].join('');
}

/** Returns the sightings of a command as JSON, each as a PackedSighting. */
function packedSightings({ commandId, sightings }: Command, at: number): string {
  const packed = sightings.map(
    ({ messageId, firstSeenAt, lastSeenAt, count }) =>
      `[${packedId(commandId, messageId)},${firstSeenAt - at},${lastSeenAt - at},${count}]`,
  );
  return `[${packed.join()}]`;
}

function unpackSightings(commandId: string, packed: readonly PackedSighting[], at: number): readonly Sighting[] {
  return packed.map(([id, first, last, count]) => ({
    messageId: unpackId(commandId, id),
    firstSeenAt: at + first,
    lastSeenAt: at + last,
    count,
  }));
}

/**
 * The data of a call that the history rows of its command show. The last two elements are absent if the call has
 * neither.
 */
export type PackedTrace = readonly [
  traceId: string | null,
  parentSpanId: string | null,
  contextId?: string | null,
  callerLabel?: CallerLabel | null,
];

type TraceOfRow = Pick<NewMessage, 'traceId' | 'parentSpanId' | 'contextId' | 'callerLabel'>;

export function packTrace({ traceId, parentSpanId, contextId, callerLabel }: TraceOfRow): PackedTrace | null {
  if (contextId !== undefined || callerLabel) return [traceId, parentSpanId, contextId ?? null, callerLabel ?? null];
  return traceId === null && parentSpanId === null ? null : [traceId, parentSpanId];
}

/**
 * Adds the dispatch attempt of the next fact, which must be `add`, `run` or `entry`. Adds nothing if `markedBy` is
 * null.
 */
export function addAttempt(records: ActWriter, markedBy: string | null): void {
  if (markedBy !== null) records.addText(`"by",${json(markedBy)}`);
}

/** A history row of a command, with its number. `trace`: null if the row shows no data of the call. */
type CommandRow = CommandMessage & { readonly trace: PackedTrace | null; readonly seq: number };

/**
 * Adds a history row of the command that the act is about. `place`: the number of the row's payload, if the act
 * contains that payload already.
 */
export function addRow(
  records: ActWriter,
  commandId: string,
  { kind, instanceId, id, kept, error = null, trace, seq }: CommandRow,
  place = records.payload(kept?.payload ?? null),
): void {
  const packed = id === undefined ? 'null' : packedId(commandId, id);
  const more = `${json(kept?.spill ?? null)},${json(error)},${json(trace)},${seq}`;
  records.addText(`"row","${kind}",${quote(instanceId)},${packed},${place},${more}`);
}

/**
 * A caller as an array: kind and name; then kind, name and version of its label, or 0 for each of the three; then the
 * id of its token and the token's time of issue in seconds. Missing elements at the end are omitted.
 */
type PackedCaller = readonly [
  kind: CommandCaller['kind'],
  name: string,
  labelKind?: CallerLabel['kind'] | 0,
  labelName?: string | 0,
  version?: string | 0 | null,
  tokenId?: string | null,
  issuedAt?: number | null,
];

/** The most strings and callers that the cache holds. */
const INTERNED = 20_000;

/**
 * Returns one shared object for equal strings, so that restored records take no more memory than those of the former
 * process.
 */
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

  caller(packed: PackedCaller): CommandCaller {
    // The length distinguishes callers whose joined texts are equal, because the id of a token may contain any
    // character.
    const key = `${packed.length}\n${packed.join('\n')}`;
    const known = this.#callers.get(key);
    if (known) return known;
    if (this.#callers.size >= INTERNED) this.#callers = new Map();
    const made = callerOf(packed);
    this.#callers.set(key, made);
    return made;
  }
}

function callerOf([kind, name, labelKind, labelName, version, id, issuedAt]: PackedCaller): CommandCaller {
  const text = (element: string | 0 | null | undefined): string | null =>
    typeof element === 'string' ? element : null;
  const label = labelKind ? { kind: labelKind, name: text(labelName) ?? '', version: text(version) } : null;
  const time = issuedAt === null || issuedAt === undefined ? null : Math.round(issuedAt * 1_000);
  const token = issuedAt === undefined ? null : { id: id ?? null, issuedAt: time };
  return { kind, name, ...(label && { label }), ...(token && { token }) };
}
