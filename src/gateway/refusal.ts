/** Turns errors into `refused` frames, with the fields that identify the refused frame. */
import { randomUUID } from 'node:crypto';
import { CallboardError, internalMessage, type Code } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import { MAX_ERROR_MESSAGE } from '../protocol/codes.ts';
import { ID } from '../protocol/fields.ts';
import type { DownHeader, UpFrame } from '../protocol/frames.ts';

/**
 * The delay after which a peer may retry if a share is used up, in milliseconds. In that time some connections and
 * commands will have ended and released their part of the share.
 */
const SHARE_RETRY_MS = 5_000;

/** Why a frame is refused. */
export type Refusal = {
  readonly code: Code;
  readonly message: string;
  readonly retryAfterMs?: number | null | undefined;
  readonly by?: string | undefined;
  /** The name of the share that is used up. */
  readonly share?: string | undefined;
};

/** The frame that is refused, as far as it could be read. */
export type OffendingFrame = {
  readonly frame?: string | null | undefined;
  readonly ref?: string | null | undefined;
  readonly commandId?: string | null | undefined;
};

export function aboutFrame(frame: UpFrame): OffendingFrame {
  return {
    frame: frame.type,
    ref: 'ref' in frame ? frame.ref : null,
    commandId: 'command_id' in frame ? frame.command_id : null,
  };
}

export function refusedFrame({ code, message, retryAfterMs, by, share }: Refusal, about: OffendingFrame): DownHeader {
  return {
    type: 'refused',
    code,
    message: clip(message, MAX_ERROR_MESSAGE),
    frame: about.frame ?? undefined,
    ref: idOrNothing(about.ref),
    command_id: idOrNothing(about.commandId),
    retry_after_ms: retryAfterMs ?? undefined,
    by,
    share,
  };
}

/**
 * Returns the refusal for an error. Hides every error that is not a CallboardError: the peer gets only an id, under
 * which the log has the error.
 */
export function refusalOf(error: unknown, { log, metrics }: { readonly log: Log; readonly metrics: Metrics }): Refusal {
  if (error instanceof CallboardError) {
    const { retryAfterMs, share } = error.details;
    const later = retryAfterMs ?? (share === undefined ? undefined : SHARE_RETRY_MS);
    return { code: error.code, message: error.message, retryAfterMs: later, share };
  }
  const id = randomUUID();
  log.error({ err: error, id }, 'unexpected error while handling a frame');
  metrics.count('errors_masked');
  return { code: 'internal', message: internalMessage(id) };
}

/** Cuts a text to `max` UTF-16 units. A lone surrogate, such as half a character at the cut, becomes U+FFFD. */
export function clip(text: string, max: number): string {
  return text.slice(0, max).toWellFormed();
}

/**
 * Returns the text if it is a valid id. With any other reference the refusal would not be a valid frame for the peer.
 */
function idOrNothing(text: string | null | undefined): string | undefined {
  return text !== null && text !== undefined && ID.test(text) ? text : undefined;
}
