/**
 * Encodes and decodes the record of a command, and holds commands in this process: a cache of live commands, from which
 * the next act on them is decided without a read, and the commands in the transaction of one act.
 *
 * Lua reads single fields of a record by their position.
 *
 * The HASH of a client contains its live commands: `s<id>` the state, `a<id>` the request, `p<id>` the params, `w<id>`
 * the waits. Three further fields concern the client: `b`, the link that the client is bound to (see
 * link-transaction.ts); `n`, the number of commands that were not dispatched; and `o`, the highest place in its queue
 * that was given to a command. `n` and `o` are removed once every command was dispatched. The record of an ended
 * command is one text: the state, followed by the request.
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

/** The fields of a record's state, which change, in the order of its text. Each field is followed by a NUL. */
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
/**
 * The fields of a record's request, which follow those of the state. They never change, except the last two of
 * OPTIONAL.
 */
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
 * The optional fields of a request. Those after the last field with a value are omitted, so that a request without any
 * of them takes no more bytes. Records from before a field was introduced lack it.
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

/** Returns the names of these fields, each followed by its position in the text of a record, from 1. */
export function placesOf(...names: readonly ((typeof STATE)[number] | (typeof REQUEST)[number])[]): readonly string[] {
  return names.flatMap((name) => [name, String((PLACES.get(name) ?? -1) + 1)]);
}

/** The mark that remains of the record of an ended command, and until when (see lib-reduce in commands-records.lua). */
export type StoredMark = { readonly mark: CommandMark; readonly digest: string; readonly until: number };

/** Decodes a mark, which takes the place of a record; null if the text is a record. */
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

/** Takes the place of the result's span in a record if the user's share had no room for the result. */
const NO_ROOM = '-';

type Values = Readonly<Record<string, string | null | undefined>>;

/** Encodes the request of a record. Throws `internal` for a field that contains a NUL. */
export function encodeRequest(values: Values): string {
  const given = OPTIONAL.findLastIndex((name) => (values[name] ?? '') !== '') + 1;
  const texts = [...REQUEST, ...OPTIONAL.slice(0, given)].map((name) => values[name] ?? '');
  if (texts.some((text) => text.includes('\0'))) throw new CallboardError('internal', 'A record holds no NUL.');
  return `${texts.join('\0')}\0`;
}

/** Returns the fields of a request that tell who made it. */
export function callerFields({ kind, name, label }: CommandCaller): Values {
  const named = { callerKind: kind, callerName: name };
  return label ? { ...named, labelKind: label.kind, labelName: label.name, labelVersion: label.version } : named;
}

/**
 * Returns the text of a request with the present values of its last fields, which tell about the answer and may change.
 */
function withAnswer(request: string, before: Command, { answeredAt, owedBy }: Command): string {
  if (answeredAt === before.answeredAt && owedBy === before.owedBy) return request;
  const fields = request.split('\0').slice(0, -1);
  const at = (PLACES.get('answeredAt') ?? 0) - STATE.length;
  const kept = Array.from({ length: at }, (_, i) => fields[i] ?? '');
  return `${[...kept, answeredAt ?? '', ...(owedBy === undefined ? [] : [owedBy])].join('\0')}\0`;
}

/** The values in the state of a record that core's Command does not have. */
type StateExtras = {
  /** Grows with every write. Together with `admittedAt`, it distinguishes all states that a command ever has. */
  readonly rev: number;
  /** The place in the client's queue. */
  readonly place: string;
  readonly queuedOn: string | null;
  readonly markedBy: string | null;
  readonly forgetAt: number | null;
  readonly resultIn: string;
  readonly progress: { readonly rows: number; readonly at: number } | null;
  readonly queuedBytes: number;
  /** True if the relay made the id and there was no room for its mark. */
  readonly unmarked: boolean;
};

/** Encodes the state of a record, with its fields in the order of STATE. */
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

/** Returns the values of a state that core's Command does not have. */
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

/** Decodes a record whose text is already split into its fields. */
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
 * Decodes the record of a command that has just ended, for its waiters. The result counts as present, even if there was
 * no room to store it.
 */
export function decodeEnded(record: Fields): Command {
  return { ...decodeCommand(record), resultExpired: false };
}

/** Decodes a record as `decodeCommand` does; null if there is no record. */
export function decodeCommandOr(record: Fields): Command | null {
  return typeof record === 'string' ? decodeCommand(record) : null;
}

/** Parses JSON without validating it, because only this backend wrote it. */
function parsed<T>(json: string | null): T | null {
  return json === null ? null : (JSON.parse(json) as T);
}

/**
 * Returns a command as it is shown at this time. `resultExpired` is set also once the command completed more than
 * `retentionMs` ago, because results are not shown for longer. It is then set even for a command without a result,
 * because the record does not tell whether there was one.
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
export type LiveCommand = {
  readonly command: Command;
  /** The values in the state of the record that core's Command does not have. */
  readonly extras: StateExtras;
  /** The text of the record's request (see `encodeRequest`). */
  readonly request: string;
  /** The waiters of the command, in the text form of its client's HASH; null if unknown. */
  readonly waits: string | null;
  /** The params of the command as JSON; null if unknown. */
  readonly params: string | null;
};

/**
 * The most commands in the cache, and the most characters. Beyond this, the oldest are dropped; the next act on a
 * dropped command must read it.
 */
const MOST = 20_000;
const MOST_CHARS = 32 * 1024 * 1024;

/** The memory that a decoded command takes besides its texts, estimated in characters. */
const COMMAND_CHARS = 2_000;

type HeldTexts = Pick<LiveCommand, 'request' | 'waits' | 'params'> & { readonly state: string };

/** Decodes a live command from the texts of its record. */
export function heldCommand({ state, request, waits, params }: HeldTexts): LiveCommand {
  const texts = { state: textsOf(state), request: textsOf(request) };
  return { command: commandOf(texts), extras: extrasOf(texts.state), request, waits, params };
}

/**
 * A cache of the records of live commands. A missing or outdated entry is harmless: Redis compares the data that
 * decided an act, and if it differs the data is read and the act is decided again.
 */
export interface HeldCommands {
  get(key: CommandKey): LiveCommand | undefined;
  put(key: CommandKey, held: LiveCommand): void;
  drop(key: CommandKey): void;
}

/** Creates an empty cache. `most`: the most commands in it. */
export function createHeldCommands(most = MOST): HeldCommands {
  const known = new Map<string, LiveCommand>();
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

function sizeOf({ request, waits, params }: LiveCommand): number {
  return request.length + COMMAND_CHARS + (waits?.length ?? 0) + (params?.length ?? 0);
}

type NewEntry = {
  readonly request: string;
  readonly params: string | null;
  readonly markedBy: string | null;
  readonly queuedBytes: number;
};

/**
 * A command in the transaction of one act: as it was before (read or remembered), and as it is after the act. Only the
 * transaction changes it.
 */
export class Entry implements HeldCommand {
  command: Command;
  queuedOn: string | null;
  markedBy: string | null;
  progress: Progress | null;
  /** The bytes of its params that count in the share queued_bytes. */
  queuedBytes: number;
  /** True if the relay made its id and there was no room for its mark. */
  unmarked: boolean;
  /** When the record of an ended command is forgotten; null while the command is live. */
  forgetAt: number | null;
  /** The span of its result; '' if there is none, '-' if there was no room for it. */
  resultIn: string;
  /** The waiters of the command, as one text; null if unknown. */
  waits: string | null;
  /** The value of `waits` before the act; null if the act has not changed it. */
  waitsBefore: string | null = null;
  /** The key that contains the record of an ended command; null while the command is live. */
  span: string | null;
  /** The node that the act posts the command to; null if it posts none. */
  offeredTo: string | null = null;
  isChanged = false;
  readonly isNew: boolean;
  /** The command before the act. For a new command, only its request and params are valid. */
  readonly held: LiveCommand;

  private constructor(held: LiveCommand, { span, isNew }: { readonly span: string | null; readonly isNew: boolean }) {
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

  /** Creates the entry of a live command that this process remembers. */
  static live(held: LiveCommand): Entry {
    return new Entry(held, { span: null, isNew: false });
  }

  /** Creates the entry of a live command that was read. */
  static read(texts: { readonly state: string; readonly request: string; readonly waits: string }): Entry {
    return Entry.live(heldCommand({ ...texts, params: null }));
  }

  /** Creates the entry of an ended command. `span`: the key that contains its record. */
  static ended(whole: string, span: string): Entry {
    const held = heldCommand({ ...splitRecord(whole), waits: '', params: null });
    return new Entry(held, { span, isNew: false });
  }

  /** Creates the entry of a command that the act adds. */
  static added(command: Command, { request, params, markedBy, queuedBytes }: NewEntry): Entry {
    const of = { queuedOn: command.nodeId, markedBy, queuedBytes };
    const extras = { rev: 0, place: '', forgetAt: null, resultIn: '', progress: null, unmarked: false, ...of };
    return new Entry({ command, extras, request, waits: '', params }, { span: null, isNew: true });
  }

  /** The place in the client's queue; '' for a new command, whose place only Redis knows. */
  get place(): string {
    return this.held.extras.place;
  }

  /**
   * The beginning of its text in Redis. No other state that this command had or will have begins with the same text.
   */
  get start(): string {
    return `${this.held.extras.rev}\0${this.held.command.admittedAt}\0`;
  }

  /** Returns the text of the state after the act. `place`: the place of a new command, which only Redis knows. */
  state(place = this.isNew ? '0' : this.place): string {
    return stateText(this.command, this.#extras(place));
  }

  #extras(place: string): StateExtras {
    const { queuedOn, markedBy, forgetAt, resultIn, progress, queuedBytes, unmarked } = this;
    const more = { queuedOn, markedBy, forgetAt, resultIn, progress, queuedBytes, unmarked };
    return { rev: this.#revAfter(), place, ...more };
  }

  /** An act that changes nothing keeps the revision, because it writes nothing. */
  #revAfter(): number {
    const { rev } = this.held.extras;
    if (this.isNew) return this.command.version;
    return this.isChanged ? rev + 1 : rev;
  }

  /** Returns the whole text of the record after the act. */
  whole(): string {
    return this.state() + this.request;
  }

  /** Returns the text of the request after the act. */
  get request(): string {
    return withAnswer(this.held.request, this.held.command, this.command);
  }

  /**
   * Returns the command as this process should remember it after the act. `place`: the place in the answer of Redis; ''
   * if the answer has none.
   */
  remembered(place: string): LiveCommand {
    const { command, held, waits } = this;
    const extras = this.#extras(this.isNew ? place || '0' : this.place);
    return { command, extras, request: this.request, waits, params: held.params };
  }
}
