/**
 * Reads and writes the text of a command's record. Lua reads single fields of it by their place.
 *
 * A client's HASH has its live commands: `s<id>` the state, `a<id>` the request, `p<id>` the params, `w<id>` the waits;
 * and of the client: `b` the link that it is bound to (see link-words.ts), `n` how many commands were not dispatched,
 * `o` the highest place in its queue that was given to a command. `n` and `o` are removed once every command was
 * dispatched. The record of an ended command is one text: the state, and then the request.
 */
import type { CallerLabel } from '../../../core/auth/principal.ts';
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
import { type Fields, type Reply } from '../types.ts';
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
/** The fields of the request, which follow those of the state. They never change. */
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
const OPTIONAL = ['contextId', 'labelKind', 'labelName', 'labelVersion', 'answeredAt'] as const;
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
export function splitRecord(whole: string): { readonly state: string; readonly request: string } {
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

/**
 * Returns the text of the request in the record of an ended command. Its last field, which says when the answer was
 * delivered, is the only one that is added later.
 */
export function endedRequest(request: string, { answeredAt }: Command): string {
  if (answeredAt === undefined) return request;
  const fields = request.split('\0').slice(0, -1);
  const at = (PLACES.get('answeredAt') ?? 0) - STATE.length;
  return `${[...Array.from({ length: at }, (_, i) => fields[i] ?? ''), answeredAt].join('\0')}\0`;
}

/** What the state of a record has besides core's Command. */
export type StateExtras = {
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
export function stateText(c: Command, more: StateExtras): string {
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
export function extrasOf(state: readonly string[]): StateExtras {
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
export function commandOf({ state, request }: RecordTexts): Command {
  const text = (name: string): string => {
    const at = PLACES.get(name) ?? -1;
    return (at < STATE.length ? state[at] : request[at - STATE.length]) ?? '';
  };
  const maybe = (name: string): string | null => text(name) || null;
  const number = (name: string): number => Number(text(name));
  const stamp = (name: string): number | null => (text(name) === '' ? null : number(name));
  const contextId = text('contextId');
  const answeredAt = stamp('answeredAt');
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
