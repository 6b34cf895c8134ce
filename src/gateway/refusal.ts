import { randomUUID } from 'node:crypto';
import { CallboardError, type Code } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import { MAX_ERROR_MESSAGE } from '../protocol/codes.ts';
import { ID } from '../protocol/fields.ts';
import type { DownHeader, UpFrame } from '../protocol/frames.ts';

/** When a share that is used up may have room again: what a requester holds is given back by connections and commands that end. */
const SHARE_RETRY_MS = 5_000;

/** Why a frame is refused. */
export type Refusal = {
  readonly code: Code;
  readonly message: string;
  readonly retryAfterMs?: number | null | undefined;
  readonly by?: string | undefined;
  /** Which share is used up. */
  readonly share?: string | undefined;
};

/** Which frame is refused, as far as it could be read. */
export type About = {
  readonly frame?: string | null | undefined;
  readonly ref?: string | null | undefined;
  readonly commandId?: string | null | undefined;
};

export function aboutFrame(frame: UpFrame): About {
  return {
    frame: frame.type,
    ref: 'ref' in frame ? frame.ref : null,
    commandId: 'command_id' in frame ? frame.command_id : null,
  };
}

export function refusedFrame({ code, message, retryAfterMs, by, share }: Refusal, about: About): DownHeader {
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

/** What may be shown of an error. One that is not ours is masked: its id also stands in the log, beside it. */
export function refusalOf(error: unknown, { log, metrics }: { readonly log: Log; readonly metrics: Metrics }): Refusal {
  if (error instanceof CallboardError) {
    const { retryAfterMs, share } = error.details;
    const later = retryAfterMs ?? (share === undefined ? undefined : SHARE_RETRY_MS);
    return { code: error.code, message: error.message, retryAfterMs: later, share };
  }
  const id = randomUUID();
  log.error({ err: error, id }, 'a frame met an unexpected error');
  metrics.count('errors_masked');
  return { code: 'internal', message: `Something went wrong here; the log knows it as ${id}.` };
}

/** At most so many UTF-16 units, without half a character at the cut. */
export function clip(text: string, max: number): string {
  return text.slice(0, max).toWellFormed();
}

/** A reference that is no id cannot be echoed: the peer would not understand the refusal. */
function idOrNothing(text: string | null | undefined): string | undefined {
  return text !== null && text !== undefined && ID.test(text) ? text : undefined;
}
