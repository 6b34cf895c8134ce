/** Executes operations over the schema without HTTP. */
import { execute, parse, subscribe, validate, type ExecutionResult, type GraphQLSchema } from 'graphql';
import { logAct } from '../../../src/core/audit/audit-log.ts';
import type { Principal } from '../../../src/core/auth/principal.ts';
import type { Core } from '../../../src/core/core.ts';
import type { Log } from '../../../src/core/ports.ts';
import { createContext } from '../../../src/graphql/schema/context.ts';
import { schema } from '../../../src/graphql/schema/schema.ts';

export const admin: Principal = { kind: 'admin', name: 'root', expiresAt: null };
export const ann: Principal = { kind: 'user', userId: 'ann', scopes: new Set(['invoke']), expiresAt: null };

export type Execution = {
  readonly core: Core;
  readonly requester?: Principal | null;
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly schema?: GraphQLSchema;
  /** Receives the rows of the audit log. */
  readonly audit?: Record<string, unknown>[];
  readonly signal?: AbortSignal;
};

function prepare(
  document: string,
  { core, requester = admin, variables, schema: of = schema, audit, signal }: Execution,
) {
  const parsed = parse(document);
  const faults = validate(of, parsed);
  if (faults.length > 0) throw new AggregateError(faults, faults.map(({ message }) => message).join('; '));
  const noted = noting(core, (fields) => void audit?.push(fields));
  const contextValue = createContext({ core: noted, requester, signal });
  return { schema: of, document: parsed, contextValue, ...(variables && { variableValues: variables }) };
}

/** Returns the core without audit rows for reads. Reading then changes nothing, so that answers can be compared. */
export function unaudited(core: Core): Core {
  return Object.assign(Object.create(core), { reveals: { ...core.reveals, read() {} } });
}

/** Returns a core that calls `note` for each payload that is read. The fields of a note are those of an audit row. */
function noting(core: Core, note: (fields: Record<string, unknown>) => void): Core {
  const log: Log = { debug() {}, warn() {}, error() {}, info: note };
  const read: Core['reveals']['read'] = (requester, subject) =>
    requester?.kind === 'admin' ? logAct(log, requester, { action: 'payload', subject, reason: null }) : undefined;
  return Object.assign(Object.create(core), { reveals: { ...core.reveals, read } });
}

/** Validates and runs a document with graphql-js. Throws for an invalid one. */
export async function ask(document: string, requested: Execution): Promise<ExecutionResult> {
  return execute(prepare(document, requested));
}

/** Returns the data of an answer as plain JSON. Throws if there is any error. */
export async function dataOf(document: string, requested: Execution): Promise<Record<string, unknown>> {
  const { data, errors } = await ask(document, requested);
  if (errors?.[0]) throw errors[0];
  return JSON.parse(JSON.stringify(data)) as Record<string, unknown>;
}

/** Returns the code of the first error if it has one, otherwise its message. */
export async function codeOf(document: string, requested: Execution): Promise<unknown> {
  const { errors } = await ask(document, requested);
  const error = errors?.[0];
  const origin: unknown = error?.cause;
  return typeof origin === 'object' && origin !== null && 'code' in origin ? origin.code : error?.message;
}

/** Subscribes and yields each event's data. Throws when the subscription is refused. */
export async function listen(document: string, requested: Execution): Promise<AsyncIterableIterator<ExecutionResult>> {
  const answer = await subscribe(prepare(document, requested));
  if ('errors' in answer) throw answer.errors?.[0] ?? new Error('refused');
  if (!(Symbol.asyncIterator in answer)) throw new Error('no events');
  return answer as AsyncIterableIterator<ExecutionResult>;
}
