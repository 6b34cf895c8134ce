import type { Invocation, RefusedBy } from '../core.ts';
import type { AdmitRefusal } from '../delivery/commands.ts';
import type { Code } from '../errors.ts';

type Refusal = Extract<Invocation, { kind: 'refused' }>;

/** What a caller is told of each refusal of admission, and which layer refused. */
const ADMISSION: Readonly<
  Record<AdmitRefusal, { readonly by: RefusedBy; readonly message: string; readonly retryAfterMs?: number }>
> = {
  command_conflict: { by: 'conflict', message: 'This command id was used for another request.' },
  not_connected: { by: 'target', message: 'The client is not connected, and the call allows no time to connect.' },
  instance_mismatch: { by: 'target', message: 'Another instance of the client is live than the one named.' },
  capacity_exceeded: {
    by: 'capacity',
    message: 'The admission scope or the command holds as much as it may.',
    retryAfterMs: 1000,
  },
  share_exceeded: {
    by: 'capacity',
    message: 'You have more command ids than your share, and the relay has no more room for ids that callers choose.',
    retryAfterMs: 60_000,
  },
  store_full: {
    by: 'capacity',
    message: 'The relay has no more room for ids that callers choose.',
    retryAfterMs: 60_000,
  },
  queue_full: { by: 'capacity', message: 'As many commands wait for this client as may.', retryAfterMs: 1000 },
};

export function refused(
  code: Code,
  by: RefusedBy,
  message: string,
  more: Partial<Pick<Refusal, 'retryAfterMs' | 'commandId'>> = {},
): Refusal {
  return { kind: 'refused', code, by, message, retryAfterMs: null, commandId: null, ...more };
}

export function refusedAdmission(code: AdmitRefusal, commandId: string | null): Refusal {
  const { by, message, retryAfterMs } = ADMISSION[code];
  return refused(code, by, message, { commandId, retryAfterMs: retryAfterMs ?? null });
}
