/**
 * Reads and writes the text of a command's record, of which Lua reads single fields by their place, and holds commands
 * in this process: the cache of live ones, from which the next act on them is decided without a read, and a command in
 * the transaction of one act.
 *
 * A client's HASH has its live commands: `s<id>` the state, `a<id>` the request, `p<id>` the params, `w<id>` the waits;
 * and of the client: `b` the link that it is bound to (see link-transaction.ts), `n` how many commands were not dispatched,
 * `o` the highest place in its queue that was given to a command. `n` and `o` are removed once every command was
 * dispatched. The record of an ended command is one text: the state, and then the request.
 */
import type { CallerLabel } from '../../../core/auth/caller-label.ts';
import type { ClientType } from '../../../core/connections/connection.ts';
import { CallboardError, isCode } from '../../../core/errors.ts';
import type {
  Command,
  CommandCaller,
  CommandMark,
  ExecutionEvidence,
  LateEvidence,
  Outcome,
  ProvenStage,
  Sighting,
  Stage,
} from '../../../core/commands/command.ts';
import type { TerminalError } from '../../../core/history/message.ts';
import type { Fields, Reply } from '../replies.ts';
import type { HeldCommand, Progress } from '../../../core/commands/transaction.ts';
import { commandKeyText, type CommandKey } from '../../../core/ids.ts';

/**
 * The fields of a record's state, which are those that change, in the order of its text. Each is followed by a NUL.
 */
export const STATE = [
  'rev',
  'admittedAt',
  'place',
  'version',
  'stage',
  'lastProvenStage',
  'outcome',
  'execution',
  'terminalAt',
  'attempts',
  'lateResults',
  'connectDeadline',
  'deadline',
  'expectedInstanceId',
  'nodeId',
  'queuedOn',
  'recoveredFromNodeId',
  'queuedAt',
  'boundInstanceId',
  'dispatchedAt',
  'markedBy',
  'acknowledgedAt',
  'reason',
  'error',
  'cancelRequestedAt',
  'forgetAt',
  'sightings',
  'firstLate',
  'resultIn',
  'progressRows',
  'progressRowAt',
  'queuedBytes',
  'unmarked',
] as const;
/** The fields of the request, which follow those of the state. They never change, but for the last two of OPTIONAL. */
export const REQUEST = [
  'ch',
  'uh',
  'sh',
  'sth',
  'userId',
  'clientId',
  'commandId',
  'action',
  'digest',
  'scopeId',
  'namedInstanceId',
  'traceId',
  'parentSpanId',
  'callerKind',
  'callerName',
  'traceFlags',
  'traceState',
  'clientType',
  'callSpan',
] as const;
/**
 * The fields that a request may have besides. Those after the last one with a value are left out, so that a request
 * without any of them takes no more bytes. Records that were written before one was added lack it.
 */
const OPTIONAL = ['contextId', 'labelKind', 'labelName', 'labelVersion', 'answeredAt', 'owedBy'] as const;
const PLACES: ReadonlyMap<string, number> = new Map([...STATE, ...REQUEST, ...OPTIONAL].map((name, at) => [name, at]));

/** Returns a field of a state that was split into its fields. */
function fieldOf(fields: readonly string[], name: (typeof STATE)[number]): string {
  return fields[PLACES.get(name) ?? -1] ?? '';
}

/** Returns a field of a request that was split into its fields. */
export function requestField(fields: readonly string[], name: (typeof REQUEST | typeof OPTIONAL)[number]): string {
  return fields[(PLACES.get(name) ?? -1) - STATE.length] ?? '';
}

/** Returns the names of these fields, each followed by its place in the text of a record, from 1. */
export function placesOf(...names: readonly ((typeof STATE)[number] | (typeof REQUEST)[number])[]): readonly string[] {
  return names.flatMap((name) => [name, String((PLACES.get(name) ?? -1) + 1)]);
}

/** What is left of the record of an ended command, and until when (see lib-reduce in commands-records.lua). */
export type StoredMark = { readonly mark: CommandMark; readonly digest: string; readonly until: number };

/** Decodes a mark that stands in the place of a record; null for a record. */
export function decodeMark(text: string): StoredMark | null {
  if (!text.startsWith('m\0')) return null;
  const [, until, , endedAt, outcome, execution, code = '', hadResult, digest = ''] = text.split('\0');
  const mark: CommandMark = {
    outcome: outcome as Outcome,
    execution: execution as ExecutionEvidence,
    errorCode: isCode(code) ? code : null,
    endedAt: Number(endedAt),
    resultExpired: hadResult === '1',
  };
  return { mark, digest, until: Number(until) };
}

/** Splits the text of a record into its state and its request. */
function splitRecord(whole: string): { readonly state: string; readonly request: string } {
  let at = 0;
  for (let i = 0; i < STATE.length; i++) at = whole.indexOf('\0', at) + 1;
  return { state: whole.slice(0, at), request: whole.slice(at) };
}

/** The fields of a record as texts, in the orders of STATE and REQUEST. */
type RecordTexts = { readonly state: readonly string[]; readonly request: readonly string[] };

/** Splits the text of a state or of a request into its fields. */
export function textsOf(text: string): readonly string[] {
  return text.split('\0');
}

/** The text that a record has instead of its result's span if there was no room for the result in its user's share. */
const NO_ROOM = '-';

type Values = Readonly<Record<string, string | null | undefined>>;

/** Encodes the request of a record. Throws `internal` for a field that contains a NUL. */
export function encodeRequest(values: Values): string {
  const given = OPTIONAL.findLastIndex((name) => (values[name] ?? '') !== '') + 1;
  const texts = [...REQUEST, ...OPTIONAL.slice(0, given)].map((name) => values[name] ?? '');
  if (texts.some((text) => text.includes('\0'))) throw new CallboardError('internal', 'A record holds no NUL.');
  return `${texts.join('\0')}\0`;
}

/** Returns the fields of a request that say who made it. */
export function callerFields({ kind, name, label }: CommandCaller): Values {
  const named = { callerKind: kind, callerName: name };
  return label ? { ...named, labelKind: label.kind, labelName: label.name, labelVersion: label.version } : named;
}

/** Returns the text of a request with what the record says of the answer: its last fields, which change. */
function withAnswer(request: string, before: Command, { answeredAt, owedBy }: Command): string {
  if (answeredAt === before.answeredAt && owedBy === before.owedBy) return request;
  const fields = request.split('\0').slice(0, -1);
  const at = (PLACES.get('answeredAt') ?? 0) - STATE.length;
  const kept = Array.from({ length: at }, (_, i) => fields[i] ?? '');
  return `${[...kept, answeredAt ?? '', ...(owedBy === undefined ? [] : [owedBy])].join('\0')}\0`;
}

/** What the state of a record has besides core's Command. */
type StateExtras = {
  /** Grows with every write. Together with `admittedAt` it tells apart all states that a command ever has. */
  readonly rev: number;
  /** The place in the client's queue. */
  readonly place: string;
  readonly queuedOn: string | null;
  readonly markedBy: string | null;
  readonly forgetAt: number | null;
  readonly resultIn: string;
  readonly progress: { readonly rows: number; readonly at: number } | null;
  readonly queuedBytes: number;
  /** Whether the relay made the id, and there was no room for its mark. */
  readonly unmarked: boolean;
};

/** Encodes the state of a record, in the order of STATE. */
function stateText(c: Command, more: StateExtras): string {
  const json = (value: unknown): string => (value === null ? '' : JSON.stringify(value));
  const reason = c.reason?.replaceAll('\0', '');
  const sightings = c.sightings.length === 0 ? '' : json(c.sightings);
  const { rev, place, queuedOn, markedBy, forgetAt, resultIn, progress } = more;
  const queuedBytes = more.queuedBytes > 0 ? more.queuedBytes : '';
  // `join` writes null and undefined as ''.
  const fields = [
    rev,
    c.admittedAt,
    place,
    c.version,
    c.stage,
    c.lastProvenStage,
    c.outcome,
    c.execution,
    c.terminalAt,
    c.attempts,
    c.lateResults,
    c.connectDeadline,
    c.deadline,
    c.expectedInstanceId,
    c.nodeId,
    queuedOn,
    c.recoveredFromNodeId,
    c.queuedAt,
    c.boundInstanceId,
    c.dispatchedAt,
    markedBy,
    c.acknowledgedAt,
    reason,
    json(c.error),
    c.cancelRequestedAt,
    forgetAt,
    sightings,
    json(c.firstLate),
    resultIn,
    progress?.rows,
    progress?.at,
    queuedBytes,
    more.unmarked ? '1' : '',
  ];
  return `${fields.join('\0')}\0`;
}

/** Returns what a state, split into its fields, has besides the command. */
function extrasOf(state: readonly string[]): StateExtras {
  const [rows, forgetAt] = [fieldOf(state, 'progressRows'), fieldOf(state, 'forgetAt')];
  return {
    rev: Number(fieldOf(state, 'rev')),
    place: fieldOf(state, 'place'),
    queuedOn: fieldOf(state, 'queuedOn') || null,
    markedBy: fieldOf(state, 'markedBy') || null,
    forgetAt: forgetAt === '' ? null : Number(forgetAt),
    resultIn: fieldOf(state, 'resultIn'),
    progress: rows === '' ? null : { rows: Number(rows), at: Number(fieldOf(state, 'progressRowAt')) },
    queuedBytes: Number(fieldOf(state, 'queuedBytes')),
    unmarked: fieldOf(state, 'unmarked') === '1',
  };
}

/** Decodes a record. An absent field becomes null. Use `decodeCommandOr` if there may be no record. */
export function decodeCommand(record: Fields): Command {
  const texts = textsOf(String(record));
  return commandOf({ state: texts.slice(0, STATE.length), request: texts.slice(STATE.length) });
}

/** Decodes a record whose text was split into its fields before. */
function commandOf({ state, request }: RecordTexts): Command {
  const text = (name: string): string => {
    const at = PLACES.get(name) ?? -1;
    return (at < STATE.length ? state[at] : request[at - STATE.length]) ?? '';
  };
  const maybe = (name: string): string | null => text(name) || null;
  const number = (name: string): number => Number(text(name));
  const stamp = (name: string): number | null => (text(name) === '' ? null : number(name));
  const contextId = text('contextId');
  const answeredAt = stamp('answeredAt');
  const owedBy = text('owedBy');
  return {
    userId: text('userId'),
    clientId: text('clientId'),
    commandId: text('commandId'),
    version: number('version'),
    action: text('action'),
    scopeId: text('scopeId'),
    digest: text('digest'),
    stage: text('stage') as Stage,
    lastProvenStage: text('lastProvenStage') as ProvenStage,
    outcome: maybe('outcome') as Outcome | null,
    execution: text('execution') as ExecutionEvidence,
    error: parsed<TerminalError>(maybe('error')),
    reason: maybe('reason'),
    attempts: number('attempts'),
    namedInstanceId: maybe('namedInstanceId'),
    clientType: maybe('clientType') as ClientType | null,
    expectedInstanceId: maybe('expectedInstanceId'),
    boundInstanceId: maybe('boundInstanceId'),
    nodeId: maybe('nodeId'),
    recoveredFromNodeId: maybe('recoveredFromNodeId'),
    traceId: maybe('traceId'),
    parentSpanId: maybe('parentSpanId'),
    caller: callerOf(text),
    traceFlags: maybe('traceFlags'),
    traceState: maybe('traceState'),
    callSpan: maybe('callSpan'),
    admittedAt: number('admittedAt'),
    queuedAt: stamp('queuedAt'),
    dispatchedAt: stamp('dispatchedAt'),
    acknowledgedAt: stamp('acknowledgedAt'),
    terminalAt: stamp('terminalAt'),
    cancelRequestedAt: stamp('cancelRequestedAt'),
    connectDeadline: number('connectDeadline'),
    deadline: number('deadline'),
    lateResults: number('lateResults'),
    resultExpired: text('resultIn') === NO_ROOM,
    firstLate: parsed<LateEvidence>(maybe('firstLate')),
    sightings: parsed<readonly Sighting[]>(maybe('sightings')) ?? [],
    ...(contextId !== '' && { contextId }),
    ...(answeredAt !== null && { answeredAt }),
    ...(owedBy !== '' && { owedBy }),
  };
}

function callerOf(text: (name: string) => string): CommandCaller {
  const caller = { kind: text('callerKind') as CommandCaller['kind'], name: text('callerName') };
  const kind = text('labelKind') as CallerLabel['kind'] | '';
  if (kind === '') return caller;
  return { ...caller, label: { kind, name: text('labelName'), version: text('labelVersion') || null } };
}

/**
 * Decodes the record of a command that ended just now, for its waiters: the result counts as present even if there was
 * no room to store it.
 */
export function decodeEnded(record: Fields): Command {
  return { ...decodeCommand(record), resultExpired: false };
}

/** Decodes a record as `decodeCommand` does; null if there is no record. */
export function decodeCommandOr(record: Fields): Command | null {
  return typeof record === 'string' ? decodeCommand(record) : null;
}

/** Parses JSON that our own acts wrote. */
function parsed<T>(json: string | null): T | null {
  return json === null ? null : (JSON.parse(json) as T);
}

/**
 * Returns a command as it is shown at this time. `resultExpired` is also set once the command completed `retentionMs`
 * ago, because results are shown no longer. It is set even if there was no result, because the record does not say
 * whether there was one.
 */
export function retained(
  command: Command,
  at: { readonly now: Reply | undefined; readonly retentionMs: number },
): Command {
  const { outcome, terminalAt } = command;
  const expired = outcome === 'completed' && terminalAt !== null && terminalAt + at.retentionMs <= Number(at.now);
  return expired ? { ...command, resultExpired: true } : command;
}

// Commands as this process holds them.

/** A live command as this process last read or wrote it. */
export type Held = {
  readonly command: Command;
  /** What the state of the record has besides the command. */
  readonly extras: StateExtras;
  /** The text of the record's request (see `encodeRequest`). */
  readonly request: string;
  /** The waiters of the command, as the text in its client's HASH; null if they are not known. */
  readonly waits: string | null;
  /** The command's params as JSON; null if they are not known. */
  readonly params: string | null;
};

/**
 * The most commands in the cache, and the most characters. The oldest are dropped; each drop costs a slower act later.
 */
const MOST = 20_000;
const MOST_CHARS = 32 * 1024 * 1024;

/** The memory that a decoded command takes besides its texts, estimated in characters. */
const COMMAND_CHARS = 2_000;

type HeldTexts = Pick<Held, 'request' | 'waits' | 'params'> & { readonly state: string };

/** Decodes a live command from the texts of its record. */
export function heldCommand({ state, request, waits, params }: HeldTexts): Held {
  const texts = { state: textsOf(state), request: textsOf(request) };
  return { command: commandOf(texts), extras: extrasOf(texts.state), request, waits, params };
}

/**
 * Live commands whose records this process knows. A missing or outdated entry does no harm: Redis compares what an act
 * was decided by, and if it differs the act is decided again by what is read.
 */
export interface HeldCommands {
  get(key: CommandKey): Held | undefined;
  put(key: CommandKey, held: Held): void;
  drop(key: CommandKey): void;
}

/** Creates an empty cache. `most`: the most commands in it. */
export function createHeldCommands(most = MOST): HeldCommands {
  const known = new Map<string, Held>();
  let chars = 0;
  const remove = (name: string): void => {
    const held = known.get(name);
    if (!held) return;
    known.delete(name);
    chars -= sizeOf(held);
  };
  return {
    get: (key) => known.get(commandKeyText(key)),
    put(key, held) {
      const name = commandKeyText(key);
      remove(name);
      known.set(name, held);
      chars += sizeOf(held);
      for (const oldest of known.keys()) {
        if (known.size <= most && chars <= MOST_CHARS) break;
        remove(oldest);
      }
    },
    drop: (key) => remove(commandKeyText(key)),
  };
}

function sizeOf({ request, waits, params }: Held): number {
  return request.length + COMMAND_CHARS + (waits?.length ?? 0) + (params?.length ?? 0);
}

type Added = {
  readonly request: string;
  readonly params: string | null;
  readonly markedBy: string | null;
  readonly queuedBytes: number;
};

/**
 * A command in the transaction of one act: as it was read or remembered, and as the act leaves it. Only the transaction
 * changes it.
 */
export class Entry implements HeldCommand {
  command: Command;
  queuedOn: string | null;
  markedBy: string | null;
  progress: Progress | null;
  /** The bytes that its params hold of the share queued_bytes. */
  queuedBytes: number;
  /** Whether the relay made its id, and there was no room for its mark. */
  unmarked: boolean;
  /** When the record of an ended command is forgotten; null while the command is live. */
  forgetAt: number | null;
  /** The span of its result: '' if there is none, '-' if there was no room for it. */
  resultIn: string;
  /** Who waits for the command, as one text; null: not known. */
  waits: string | null;
  /** `waits` before the act, once the act has changed them. */
  waitsBefore: string | null = null;
  /** The key that has the record of an ended command; null while the command is live. */
  span: string | null;
  /** The node that the act posts the command to; null: none. */
  offeredTo: string | null = null;
  isChanged = false;
  readonly isNew: boolean;
  /** What was known of the command before the act; of a new command, its request and params. */
  readonly held: Held;

  private constructor(held: Held, { span, isNew }: { readonly span: string | null; readonly isNew: boolean }) {
    const { command, extras, waits } = held;
    this.held = held;
    this.command = command;
    this.span = span;
    this.isNew = isNew;
    this.waits = waits;
    this.queuedOn = extras.queuedOn;
    this.markedBy = extras.markedBy;
    this.progress = extras.progress;
    this.queuedBytes = extras.queuedBytes;
    this.unmarked = extras.unmarked;
    this.forgetAt = extras.forgetAt;
    this.resultIn = extras.resultIn;
  }

  /** A live command as this process remembers it. */
  static live(held: Held): Entry {
    return new Entry(held, { span: null, isNew: false });
  }

  /** A live command that was read. */
  static read(texts: { readonly state: string; readonly request: string; readonly waits: string }): Entry {
    return Entry.live(heldCommand({ ...texts, params: null }));
  }

  /** The record of an ended command. `span`: the key that has it. */
  static ended(whole: string, span: string): Entry {
    const held = heldCommand({ ...splitRecord(whole), waits: '', params: null });
    return new Entry(held, { span, isNew: false });
  }

  /** A command that the act adds. */
  static added(command: Command, { request, params, markedBy, queuedBytes }: Added): Entry {
    const of = { queuedOn: command.nodeId, markedBy, queuedBytes };
    const extras = { rev: 0, place: '', forgetAt: null, resultIn: '', progress: null, unmarked: false, ...of };
    return new Entry({ command, extras, request, waits: '', params }, { span: null, isNew: true });
  }

  /** The place in the client's queue; '' for a new command. Only Redis knows that of a new one. */
  get place(): string {
    return this.held.extras.place;
  }

  /** How the text in Redis begins. No other state that this command had or will have begins like that. */
  get start(): string {
    return `${this.held.extras.rev}\0${this.held.command.admittedAt}\0`;
  }

  /** Returns the text of the state after the act. `place`: that of a new command, which only Redis knows. */
  state(place = this.isNew ? '0' : this.place): string {
    return stateText(this.command, this.#extras(place));
  }

  #extras(place: string): StateExtras {
    const { queuedOn, markedBy, forgetAt, resultIn, progress, queuedBytes, unmarked } = this;
    const more = { queuedOn, markedBy, forgetAt, resultIn, progress, queuedBytes, unmarked };
    return { rev: this.#revAfter(), place, ...more };
  }

  /** An act that changes nothing writes nothing, so the next revision is left to the act that does. */
  #revAfter(): number {
    const { rev } = this.held.extras;
    if (this.isNew) return this.command.version;
    return this.isChanged ? rev + 1 : rev;
  }

  /** Returns the whole text of the record after the act. */
  whole(): string {
    return this.state() + this.request;
  }

  /** The text of the request after the act. */
  get request(): string {
    return withAnswer(this.held.request, this.held.command, this.command);
  }

  /**
   * Returns the command as this process remembers it after the act. `place`: as Redis answered it; '' if it did not.
   */
  remembered(place: string): Held {
    const { command, held, waits } = this;
    const extras = this.#extras(this.isNew ? place || '0' : this.place);
    return { command, extras, request: this.request, waits, params: held.params };
  }
}
