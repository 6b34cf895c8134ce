/** The interface by which payloads are read. Types only. */
import type { AuditSubject } from '../audit/row.ts';
import type { Principal, Requester } from '../auth/principal.ts';
import type { Command } from '../delivery/command.ts';
import type { MessageKey } from '../history/store.ts';
import type { CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/**
 * How administrators read payloads. `argument`: by the arguments of listings and by `reveal`; `mutation`: by `reveal`
 * alone, which needs a reason; `off`: not at all.
 */
export const REVEAL_MODES = ['argument', 'mutation', 'off'] as const;
export type RevealMode = (typeof REVEAL_MODES)[number];

/** What to reveal: the params or the result of a command, or the payload of one retained message. */
export type RevealTarget =
  | (CommandKey & { readonly kind: 'command_params' | 'command_result' })
  | { readonly kind: 'message'; readonly key: MessageKey }
  | { readonly kind: 'message'; readonly userId: string; readonly commandId: string; readonly messageId: string };

export type RevealRequest = {
  readonly target: RevealTarget;
  /** Why the payload is revealed: REVEAL_REASON_MIN to MAX_REASON characters. */
  readonly reason: string;
  readonly requestId?: string | null | undefined;
};

/**
 * A payload that was revealed. `digest`: SHA-256 of the value's JSON text, base64url. `expiresAt`: the latest time
 * until which it is retained, in epoch milliseconds.
 */
export type RevealedPayload = { readonly value: JsonText; readonly digest: string; readonly expiresAt: number };

export interface Reveals {
  /**
   * Whether listings show payloads to this requester. Users see their own payloads in every mode. Administrators see
   * all payloads in mode `argument`, and none in the other modes.
   */
  shows(requester: Requester): boolean;
  /**
   * Writes the audit row of a read by an administrator; the payload may be shown when this resolves. Throws
   * `audit_unavailable`, and `forbidden` if `shows` is false. Writes nothing for users, who read payloads of their own.
   */
  read(requester: Principal | null, subject: AuditSubject, requestId: string | null): MaybePromise<void>;
  /**
   * Whether the requester is the administrator who invoked this command. That administrator may read the answer to it
   * in every mode.
   */
  ownsCall(requester: Requester, command: Command): boolean;
  /**
   * Reveals one payload with a reason. Throws `not_found` for what does not exist, belongs to another user or is no
   * longer retained; `rate_limited` beyond REVEALS_PER_HOUR; and `audit_unavailable`. Users reveal their own payloads
   * without an audit row.
   */
  reveal(requester: Requester, request: RevealRequest): Promise<RevealedPayload>;
}
