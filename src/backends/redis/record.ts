import type {
  Command,
  ExecutionEvidence,
  LateEvidence,
  Outcome,
  ProvenStage,
  Sighting,
  Stage,
} from '../../core/delivery/command.ts';
import type { TerminalError } from '../../core/history/message.ts';
import { trustJson, type JsonText } from '../../core/json.ts';
import type { Reply } from './wire.ts';

/** The fields of a hash: as a script answers them, name and value in turn, or as a plain HGETALL does through the client. */
export type Fields = Reply | Readonly<Record<string, string>>;

/** A reply that is a list; empty where it is none. */
export function listOf(reply: Fields | undefined): readonly Reply[] {
  return Array.isArray(reply) ? (reply as readonly Reply[]) : [];
}

/** A payload as it was given to an act; null where there is none. */
export function jsonOr(reply: Fields | undefined): JsonText | null {
  return typeof reply === 'string' ? trustJson(reply) : null;
}

/** A hash's fields by name. Empty where there was nothing. */
export function fieldsOf(fields: Fields): ReadonlyMap<string, string> {
  if (fields === null || typeof fields !== 'object') return new Map();
  if (!Array.isArray(fields)) return new Map(Object.entries(fields as Readonly<Record<string, string>>));
  const flat = fields as readonly Reply[];
  const found = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) found.set(String(flat[i]), String(flat[i + 1]));
  return found;
}

/** A command out of its record; a field that is absent is null. Of a record that is not there: use `decodeCommandOr`. */
export function decodeCommand(fields: Fields): Command {
  return commandOf(fieldsOf(fields));
}

/** As `decodeCommand`; null where there is no record. */
export function decodeCommandOr(fields: Fields): Command | null {
  const found = fieldsOf(fields);
  return found.size === 0 ? null : commandOf(found);
}

function commandOf(fields: ReadonlyMap<string, string>): Command {
  const text = (name: string): string => fields.get(name) ?? '';
  const maybe = (name: string): string | null => fields.get(name) ?? null;
  const number = (name: string): number => Number(fields.get(name) ?? 0);
  const stamp = (name: string): number | null => (fields.has(name) ? number(name) : null);
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
    admittedAt: number('admittedAt'),
    queuedAt: stamp('queuedAt'),
    dispatchedAt: stamp('dispatchedAt'),
    acknowledgedAt: stamp('acknowledgedAt'),
    terminalAt: stamp('terminalAt'),
    cancelRequestedAt: stamp('cancelRequestedAt'),
    connectDeadline: number('connectDeadline'),
    deadline: number('deadline'),
    lateResults: number('lateResults'),
    firstLate: parsed<LateEvidence>(maybe('firstLate')),
    sightings: parsed<readonly Sighting[]>(maybe('sightings')) ?? [],
  };
}

/** Only what our own acts wrote. */
function parsed<T>(json: string | null): T | null {
  return json === null ? null : (JSON.parse(json) as T);
}
