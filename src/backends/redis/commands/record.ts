import { CallboardError } from '../../../core/errors.ts';
import type {
  Command,
  CommandCaller,
  ExecutionEvidence,
  LateEvidence,
  Outcome,
  ProvenStage,
  Sighting,
  Stage,
} from '../../../core/delivery/command.ts';
import type { TerminalError } from '../../../core/history/message.ts';
import { type Fields } from '../replies.ts';
import type { Reply } from '../types.ts';

/** What of a record changes: its state, in the order of its text (see commands/lib-record.lua). */
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
] as const;
/** What was asked for: it follows. */
export const ASKED = [
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
] as const;
const PLACES: ReadonlyMap<string, number> = new Map([...STATE, ...ASKED].map((name, at) => [name, at]));

type Values = Readonly<Record<string, string | null | undefined>>;

/** The second part of a record's text. Throws `internal` for a text that cannot stand in a record. */
export function encodeAsked(values: Values): string {
  return encode(ASKED, values);
}

/** A command as a record's text. */
export function encodeCommand(command: Command): string {
  const texts = Object.entries(command).map(([name, value]): [string, string | null] => {
    if (value === null) return [name, null];
    return [name, typeof value === 'object' ? JSON.stringify(value) : String(value)];
  });
  const { kind: callerKind, name: callerName } = command.caller;
  return encode([...STATE, ...ASKED], { ...Object.fromEntries(texts), callerKind, callerName });
}

function encode(names: readonly string[], values: Values): string {
  const texts = names.map((name) => values[name] ?? '');
  if (texts.some((text) => text.includes('\0'))) throw new CallboardError('internal', 'A record holds no NUL.');
  return `${texts.join('\0')}\0`;
}

/** A command out of its record; a field that is absent is null. Of a record that is not there: use `decodeCommandOr`. */
export function decodeCommand(record: Fields): Command {
  const texts = String(record).split('\0');
  const text = (name: string): string => texts[PLACES.get(name) ?? -1] ?? '';
  const maybe = (name: string): string | null => text(name) || null;
  const number = (name: string): number => Number(text(name));
  const stamp = (name: string): number | null => (text(name) === '' ? null : number(name));
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
    expectedInstanceId: maybe('expectedInstanceId'),
    boundInstanceId: maybe('boundInstanceId'),
    nodeId: maybe('nodeId'),
    recoveredFromNodeId: maybe('recoveredFromNodeId'),
    traceId: maybe('traceId'),
    parentSpanId: maybe('parentSpanId'),
    caller: { kind: text('callerKind') as CommandCaller['kind'], name: text('callerName') },
    traceFlags: maybe('traceFlags'),
    traceState: maybe('traceState'),
    admittedAt: number('admittedAt'),
    queuedAt: stamp('queuedAt'),
    dispatchedAt: stamp('dispatchedAt'),
    acknowledgedAt: stamp('acknowledgedAt'),
    terminalAt: stamp('terminalAt'),
    cancelRequestedAt: stamp('cancelRequestedAt'),
    connectDeadline: number('connectDeadline'),
    deadline: number('deadline'),
    lateResults: number('lateResults'),
    resultExpired: false,
    firstLate: parsed<LateEvidence>(maybe('firstLate')),
    sightings: parsed<readonly Sighting[]>(maybe('sightings')) ?? [],
  };
}

/** As `decodeCommand`; null where there is no record. */
export function decodeCommandOr(record: Fields): Command | null {
  return typeof record === 'string' ? decodeCommand(record) : null;
}

/** Only what our own acts wrote. */
function parsed<T>(json: string | null): T | null {
  return json === null ? null : (JSON.parse(json) as T);
}

/**
 * A command as it is shown at this time: of one that completed `retentionMs` ago or longer the result is no longer given. Its record does not
 * say whether it had one.
 */
export function retained(
  command: Command,
  at: { readonly now: Reply | undefined; readonly retentionMs: number },
): Command {
  const { outcome, terminalAt } = command;
  const expired = outcome === 'completed' && terminalAt !== null && terminalAt + at.retentionMs <= Number(at.now);
  return expired ? { ...command, resultExpired: true } : command;
}
