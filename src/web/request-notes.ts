/**
 * Defines what handlers record about a request for its access log line. A note must never contain a payload or a token.
 */
import type { CancelReceipt, Invocation } from '../core/core.ts';
import type { TraceContext } from '../core/trace-context.ts';

/** What handlers record about a request for its access log line. They set the fields while they handle the request. */
export type RequestNotes = {
  /** The id of the request; null outside of a request. */
  readonly requestId: string | null;
  /**
   * The network that a request without a token comes from. Null: the request has a token, or the network is unknown.
   */
  network: string | null;
  /** The id of the first command that the request invoked, awaited or cancelled. */
  commandId: string | null;
  /** The outcome of that command; null while it is live. */
  outcome: string | null;
  /** The error code of that command, or of the refusal of the request. */
  code: string | null;
  /**
   * The path template that names the request in the metrics. Null: the request is not measured, for example because its
   * response is a stream.
   */
  route: string | null;
  /** The span of the request's first command, or the span in the request's headers if it has no command. Null: none. */
  trace: TraceContext | null;
};

export function emptyNotes(requestId: string | null = null): RequestNotes {
  return { requestId, network: null, commandId: null, outcome: null, code: null, route: null, trace: null };
}

/** Returns a function that records the span of the request's first command in `notes`; undefined without `notes`. */
export function spanNoter(notes: RequestNotes | undefined): ((span: TraceContext) => void) | undefined {
  if (!notes) return undefined;
  return (span) => {
    if (notes.commandId === null && notes.code === null) notes.trace = span;
  };
}

type Refused = Extract<Invocation, { readonly kind: 'refused' }>;
type Noted = Invocation | Pick<Refused, 'kind' | 'code' | 'commandId'> | CancelReceipt;

/**
 * Records the state of a command in the notes and returns `answer` unchanged. Only the first command of a request is
 * recorded.
 */
export function noteCommand<T extends Noted>(notes: RequestNotes | undefined, answer: T): T {
  if (!notes || notes.commandId !== null || notes.code !== null) return answer;
  if ('state' in answer) {
    const { commandId, outcome, command } = answer;
    Object.assign(notes, { commandId, outcome, code: command?.error?.code ?? null });
  } else if ('command' in answer) {
    const { commandId, outcome, error } = answer.command;
    Object.assign(notes, { commandId, outcome, code: error?.code ?? null });
  } else if (answer.kind === 'ended') {
    const { outcome, errorCode } = answer.mark;
    Object.assign(notes, { commandId: answer.key.commandId, outcome, code: errorCode });
  } else Object.assign(notes, { commandId: answer.commandId, code: answer.code });
  return answer;
}
