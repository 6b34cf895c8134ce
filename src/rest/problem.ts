import type { CallboardError, Code, Fault } from '../core/errors.ts';
import { SHARE_NAMES } from '../core/shares/bounds.ts';
import { CODES, statusOf } from '../protocol/codes.ts';
import type { JsonSchema } from './leaf.ts';

/** What an error says to the asker of a route. `id` also stands in the log, where the cause is. */
export type Explained = {
  readonly code: Code;
  readonly detail: string;
  readonly status?: number;
  readonly id?: string;
  readonly errors?: readonly Fault[];
  readonly retryAfterMs?: number;
  /** Which share is used up. */
  readonly share?: string;
  /** Members about the command, where there is one. */
  readonly command?: Readonly<Record<string, unknown>>;
};

/** An answer of a route: what goes onto the socket. */
export type Answer = {
  readonly status: number;
  readonly body: unknown;
  /** JSON text to be sent instead of `body`. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export const PROBLEM_TYPE = 'application/problem+json';

/** RFC 9457. The type is always `about:blank`: the code says what it is, for programs. */
export function problem(explained: Explained): Answer {
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

/** A CallboardError as its problem: for faults that were found before anything was executed. */
export function explainError(error: CallboardError): Explained {
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

/** One `invalid_argument` with every fault. */
export function invalidInput(faults: readonly Fault[]): Explained {
  return { code: 'invalid_argument', detail: detailOf(faults), errors: faults };
}

export function detailOf(faults: readonly Fault[]): string {
  return faults.map(({ parameter, detail }) => `${parameter}: ${detail}`).join('; ');
}

/** Codes that only ever stand inside a 200 answer have no problem of their own: as one, they would be our fault. */
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

/** The rate in bytes of what a user sends: no share that is held, but refused with the same code. */
const INBOUND = 'inbound';

const FAULT_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['parameter', 'detail'],
  properties: {
    parameter: { type: 'string', description: 'The name of the parameter or member, as it was written.' },
    detail: { type: 'string', description: 'What is wrong with it.' },
  },
};

/** RFC 9457 with callboard's members. Where there is a command, members about it stand beside these. */
export const PROBLEM_SCHEMA: JsonSchema = {
  type: 'object',
  description: 'Why the request was refused or failed (RFC 9457).',
  required: ['type', 'title', 'status', 'code', 'detail'],
  properties: {
    type: { type: 'string', format: 'uri-reference' },
    title: { type: 'string', description: 'The code in words.' },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    code: { type: 'string', enum: Object.keys(CODES), description: 'One of a closed table, for programs.' },
    detail: { type: 'string', description: 'What is wrong here, for people.' },
    errors: { type: 'array', items: FAULT_SCHEMA, description: 'Every wrong input.' },
    id: { type: 'string', description: 'Stands in the log of the relay too.' },
    share: {
      type: 'string',
      enum: [...SHARE_NAMES, INBOUND],
      description: 'Which share is used up, where the code is share_exceeded or store_full.',
    },
  },
};
