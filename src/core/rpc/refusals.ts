/** Turns the reasons for which an invocation is refused into answers with a code and the layer that refused. */
import type { Invocation, RefusedBy } from '../core.ts';
import type { AdmitRefusal, AdmitResult } from '../delivery/commands.ts';
import { CallboardError, type Code } from '../errors.ts';
import type { RefusedShare, ShareRefusal } from '../shares/bounds.ts';
import { isShareRefusal, SHARE_MESSAGE } from '../shares/shares.ts';

type RefusedAdmission = Extract<AdmitResult, { kind: 'refused' }>;
/** A refused invocation. */
export type InvokeRefusal = Extract<Invocation, { kind: 'refused' }>;

/** The answer to each refusal of admission, and which layer refused. */
const ADMISSION: Readonly<
  Record<
    Exclude<AdmitRefusal, ShareRefusal>,
    { readonly by: RefusedBy; readonly message: string; readonly retryAfterMs?: number }
  >
> = {
  command_conflict: { by: 'conflict', message: 'This command id was used for another request.' },
  not_connected: { by: 'target', message: 'The client is not connected, and the call allows no time to connect.' },
  instance_mismatch: { by: 'target', message: 'The live instance of the client is not the named one.' },
  capacity_exceeded: {
    by: 'capacity',
    message: 'The admission scope, or the command, is at its limit.',
    retryAfterMs: 1000,
  },
  queue_full: {
    by: 'capacity',
    message: 'The maximum number of commands already wait for this client.',
    retryAfterMs: 1000,
  },
};

export function refused(
  code: Code,
  by: RefusedBy,
  message: string,
  more: Partial<Pick<InvokeRefusal, 'retryAfterMs' | 'commandId' | 'share'>> = {},
): InvokeRefusal {
  return { kind: 'refused', code, by, message, retryAfterMs: null, commandId: null, ...more };
}

/** Refuses because one user holds too much of a bounded resource, or because its total is used up. */
export function refusedShare(code: ShareRefusal, share: RefusedShare | null): InvokeRefusal {
  const named = share === null ? {} : { share };
  return refused(code, 'capacity', SHARE_MESSAGE[code], { retryAfterMs: 1000, ...named });
}

/** Returns the answer to a refusal of the store, without the command's id. */
export function refusedAdmission({ code, share = 'marks' }: RefusedAdmission): InvokeRefusal {
  if (isShareRefusal(code)) return refusedShare(code, share);
  const { by, message, retryAfterMs } = ADMISSION[code];
  return refused(code, by, message, { retryAfterMs: retryAfterMs ?? null });
}

/** Returns the refusal for the error of a store that has no room for the act itself. Rethrows every other error. */
export function refusedStore(error: unknown): RefusedAdmission {
  if (!(error instanceof CallboardError) || error.code !== 'store_full') throw error;
  return { kind: 'refused', code: error.code, share: null };
}
