/**
 * What handlers share about a request: whether its requester has hung up, whether its origin is allowed, its count in the
 * shares, and the notes for the access log.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CancelReceipt, Invocation } from '../core/core.ts';
import type { Holdings } from '../core/shares/shares.ts';
import type { TraceContext } from '../core/trace-context.ts';

/** A cheap part of AbortSignal: aborted when the requester hangs up before the response is complete. */
export class HangUpSignal {
  readonly #res: ServerResponse;
  #listeners: Set<() => void> | null = null;

  constructor(res: ServerResponse) {
    this.#res = res;
    // An operation that may wait begins: the share `waits` bounds it from now on.
    requestDone(res);
  }

  get aborted(): boolean {
    return this.#res.destroyed && !this.#res.writableFinished;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.#listeners) this.#res.once('close', () => this.#closed());
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners?.delete(listener);
  }

  #closed(): void {
    if (this.#res.writableFinished) return;
    for (const listener of this.#listeners ?? []) listener();
  }
}

// Holds what the access log records about a request. It must not hold payloads or tokens.

/** What handlers note about a request for the access log, while they handle it. */
export type RequestNotes = {
  /** The id of the request; null outside of a request. */
  readonly requestId: string | null;
  /** The id of the first command that the request invoked, awaited or cancelled. */
  commandId: string | null;
  /** The outcome of that command; null while it is live. */
  outcome: string | null;
  /** The error code of the command, or of the request's refusal. */
  code: string | null;
  /** The path template that names the request in the metrics. Null: it is not measured, for example a stream. */
  route: string | null;
  /** The span of the request's first command; if it has no command, the span that its headers name. Null: no trace. */
  trace: TraceContext | null;
};

export function emptyNotes(requestId: string | null = null): RequestNotes {
  return { requestId, commandId: null, outcome: null, code: null, route: null, trace: null };
}

/** Returns a function that notes the span of the request's first command. */
export function spanNoter(notes: RequestNotes | undefined): ((span: TraceContext) => void) | undefined {
  if (!notes) return undefined;
  return (span) => {
    if (notes.commandId === null && notes.code === null) notes.trace = span;
  };
}

type Refused = Extract<Invocation, { readonly kind: 'refused' }>;
type Noted = Invocation | Pick<Refused, 'kind' | 'code' | 'commandId'> | CancelReceipt;

/** Notes the state of a command and returns `answer`. Only the first command of a request is noted. */
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

// Decides whether pages of an origin may use the relay.

export type OriginRule = {
  /** The allowed origins besides the relay's own, as browsers send them (`https://app.example`). Null: none. */
  readonly allowedOrigins: readonly string[] | null;
  /** Whether to trust the forwarding headers of a proxy (X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host). */
  readonly trustProxy: boolean;
};

/** The most characters of an origin that a message repeats. */
const ORIGIN_SHOWN = 200;

/**
 * Whether the request's origin is allowed. Pages cannot forge `Origin`. Browsers always send it with a WebSocket
 * handshake, so a handshake without it does not come from a browser. The comparison is an exact text match: `null`,
 * suffixes, other ports and other spellings are all foreign.
 */
export function originAllowed(request: IncomingMessage, rule: OriginRule): boolean {
  const { origin } = request.headers;
  if (origin === undefined) return true;
  return origin === ownOrigin(request, rule.trustProxy) || (rule.allowedOrigins?.includes(origin) ?? false);
}

/** Returns why an origin is refused, and which setting would allow it: ALLOWED_ORIGINS or TRUST_PROXY. */
export function foreignOrigin(request: IncomingMessage, rule: OriginRule): string {
  const { origin = '' } = request.headers;
  const refused = `Pages of the origin ${JSON.stringify(origin.slice(0, ORIGIN_SHOWN))} are not allowed.`;
  if (!rule.trustProxy && origin === ownOrigin(request, true))
    return `${refused} A proxy forwarded the request: set TRUST_PROXY if the relay is reachable through it only.`;
  return `${refused} ALLOWED_ORIGINS lists the origins besides the relay’s own.`;
}

/** Returns the origin of the relay as the requester reaches it; null if the request has no host. */
export function ownOrigin(request: IncomingMessage, trustProxy: boolean): string | null {
  const encrypted = 'encrypted' in request.socket && request.socket.encrypted === true;
  const scheme = (trustProxy ? first(request.headers['x-forwarded-proto']) : null) ?? (encrypted ? 'https' : 'http');
  const host = (trustProxy ? first(request.headers['x-forwarded-host']) : null) ?? request.headers.host;
  return host ? `${scheme}://${host}` : null;
}

/** Returns the first value of a header to which each proxy appends one: that of the browser's request. */
function first(header: string | string[] | undefined): string | null {
  const text = Array.isArray(header) ? header[0] : header;
  return text?.split(',')[0]?.trim() || null;
}

/** The requests that count in the share `requests`, by their response. */
const counted = new WeakMap<ServerResponse, Holdings>();

/** Counts a request until `requestDone`. Throws `share_exceeded` or `store_full` if the holder has too many. */
export function requestBegan(response: ServerResponse, holdings: Holdings): void {
  // The requester may have hung up while its token was checked.
  if (response.destroyed) return;
  holdings.claim('requests', 1);
  counted.set(response, holdings);
}

/**
 * Ends the counting of a request. Called when its response has ended or becomes an event stream, which counts as a
 * socket. Also called when an operation that may wait begins: the share `waits` counts it, and a burst of calls that
 * `waits` allows must not be refused here. Idempotent.
 */
export function requestDone(response: ServerResponse): void {
  const holdings = counted.get(response);
  if (!holdings) return;
  counted.delete(response);
  holdings.release('requests', 1);
}
