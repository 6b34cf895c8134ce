/** Creates problem documents (RFC 9457), and defines their members, statuses and JSON Schema. */
import type { CallboardError, Code, InputError } from '../core/errors.ts';
import { RECORDED_SHARE, SCOPE_SHARE, SHARE_NAMES } from '../core/shares/share-bounds.ts';
import { callboardErrorOf, type Mask } from '../graphql/execute/mask.ts';
import { CODES, isCode, statusOf } from '../protocol/codes.ts';
import type { Inserts } from '../web/reply.ts';
import { named } from './forms.ts';

/** What a problem document states. `id`: identifies the log entry that has the cause. */
export type ProblemDetails = {
  readonly code: Code;
  readonly detail: string;
  readonly status?: number;
  readonly id?: string;
  readonly errors?: readonly InputError[];
  readonly retryAfterMs?: number;
  /** The name of the share that is used up (core/shares/shares.ts), or `inbound`, the limit on bytes per second. */
  readonly share?: string;
  /** Members that describe the command that the problem is about, if there is one. */
  readonly command?: Readonly<Record<string, unknown>>;
};

/** The response of a route. */
export type Answer = {
  readonly status: number;
  readonly body: unknown;
  /** The JSON text of the body; if present, it is sent instead of `body`. */
  readonly text?: string;
  /** Whether `text` may contain characters beyond ASCII. */
  readonly nonAscii?: boolean;
  /** The bytes to which `text` refers (web/reply.ts). */
  readonly inserts?: Inserts;
  readonly headers?: Readonly<Record<string, string>>;
};

export const PROBLEM_TYPE = 'application/problem+json';

/** Creates a problem response (RFC 9457). `type` is always `about:blank`, because programs decide by `code`. */
export function problem(explained: ProblemDetails): Answer {
  const { code, detail, id, errors, command, share } = explained;
  const status = explained.status ?? problemStatus(code);
  const title = titleOf(code);
  const body = {
    type: 'about:blank',
    title,
    status,
    code,
    detail,
    ...(errors && errors.length > 0 && { errors }),
    ...(id !== undefined && { id }),
    ...(share !== undefined && { share }),
    ...command,
  };
  return { status, body, headers: headersOf(status, explained.retryAfterMs) };
}

/** Converts a CallboardError into the members of a problem. */
export function explainError(error: CallboardError): ProblemDetails {
  const { errors, retryAfterMs, command, share } = error.details;
  return {
    code: error.code,
    detail: error.message,
    status: error.status,
    ...(errors && { errors }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(share !== undefined && { share }),
    ...(command && {
      command: { user_id: command.userId, client_id: command.clientId, command_id: command.commandId },
    }),
  };
}

/** Returns a single `invalid_argument` that contains all faults. */
export function invalidInput(faults: readonly InputError[]): ProblemDetails {
  return { code: 'invalid_argument', detail: detailOf(faults), errors: faults };
}

export function detailOf(faults: readonly InputError[]): string {
  return faults.map(({ parameter, detail }) => `${parameter}: ${detail}`).join('; ');
}

/** Returns the HTTP status of a problem. A code that has no error status gets the status of `internal`. */
function problemStatus(code: Code): number {
  const status = statusOf(code);
  return status < 400 ? statusOf('internal') : status;
}

function titleOf(code: Code): string {
  const words = code.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function headersOf(status: number, retryAfterMs: number | undefined): Readonly<Record<string, string>> {
  if (status === 401) return { 'www-authenticate': 'Bearer' };
  if (retryAfterMs === undefined && status !== 429) return {};
  return { 'retry-after': String(Math.max(1, Math.ceil((retryAfterMs ?? 1000) / 1000))) };
}

/** The name of the limit on a user's bytes per second. It is not a share, but a refusal by it has the same code. */
const INBOUND = 'inbound';

const FAULT_SCHEMA = named('InvalidInput', {
  type: 'object',
  required: ['parameter', 'detail'],
  properties: {
    parameter: { type: 'string', description: 'The name of the parameter or member, as the request spells it.' },
    detail: { type: 'string', description: 'What is wrong with it.' },
  },
});

/** The codes that occur only in GraphQL requests, which are never answered with problems. */
const OF_GRAPHQL: ReadonlySet<Code> = new Set([
  'graphql_parse_failed',
  'graphql_validation_failed',
  'persisted_query_not_supported',
]);

/** Returns the codes of problems with this status, or the codes of all problems if `status` is null. */
export function problemCodes(status: number | null = null): readonly Code[] {
  const codes = Object.keys(CODES).filter(isCode);
  const found = codes.filter((code) => !OF_GRAPHQL.has(code) && statusOf(code) >= 400);
  if (status === null) return found;
  // 401 is the status for a token whose subject is not a valid user id.
  return found.filter((code) => statusOf(code) === status || (status === 401 && code === 'invalid_user'));
}

/** The JSON Schema of a problem. A problem about a command has further members, which describe the command. */
export const PROBLEM_SCHEMA = named('Problem', {
  type: 'object',
  description: 'Why the request was refused or failed (RFC 9457).',
  required: ['type', 'title', 'status', 'code', 'detail'],
  properties: {
    type: { type: 'string', format: 'uri-reference' },
    title: { type: 'string', description: 'The code in words.' },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    code: { type: 'string', enum: problemCodes(), description: 'One of a closed set of codes, for programs.' },
    detail: { type: 'string', description: 'What is wrong here, for people.' },
    errors: { type: 'array', items: FAULT_SCHEMA, description: 'Every wrong input.' },
    id: { type: 'string', description: 'Also appears in the log of the relay, with the cause.' },
    share: {
      type: 'string',
      enum: [...SHARE_NAMES, SCOPE_SHARE, RECORDED_SHARE, INBOUND],
      description: 'Which share is used up, where the code is share_exceeded or store_full.',
    },
  },
});

/**
 * Converts an error of execution into the members of a problem. An error that requesters must not see is logged and
 * becomes `internal`.
 */
export type Explain = (error: unknown) => ProblemDetails;

/** Creates an `Explain` that shows only those errors that the mask permits. */
export function createExplain(mask: Mask): Explain {
  return (error) => {
    const shown = mask(error);
    const known = callboardErrorOf(shown);
    if (known) return explainError(known);
    const { code, id, errors } = shown.extensions;
    // The documents are the relay's own and valid, so an error of graphql-js without a code can only be about the
    // request's input.
    if (!isCode(code)) return { code: 'invalid_argument', detail: shown.message };
    return {
      code,
      detail: shown.message,
      ...(typeof id === 'string' && { id }),
      ...(isFaults(errors) && { errors }),
    };
  };
}

function isFaults(value: unknown): value is readonly InputError[] {
  return Array.isArray(value) && value.every((one: Partial<InputError>) => typeof one?.parameter === 'string');
}
