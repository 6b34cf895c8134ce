/**
 * Decides who may read payloads, and reveals single payloads. Writes an audit row before an administrator reads one.
 */
import type { AuditSubject } from '../audit/audit-rows.ts';
import type { RevealMode } from '../auth/policy.ts';
import { knownUser } from '../auth/sight.ts';
import { requirePrincipal, type Requester } from '../auth/principal.ts';
import { isCallOf, isTerminal, type Command } from '../commands/command.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid, notFound } from '../errors.ts';
import { readPayloads } from '../history/payload-reading.ts';
import { messageAt } from '../history/history.ts';
import { streamKey, type Message, type MessageKey } from '../history/message.ts';
import { id, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { MAX_REASON, PAGE_MAX, REVEALS_PER_HOUR, REVEAL_REASON_MIN } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';

const RATE = { limit: REVEALS_PER_HOUR, windowMs: 3600_000 };

type ReasonedRead = { readonly subject: AuditSubject; readonly reason: string; readonly requestId: string | null };

const HINTS: Readonly<Record<Exclude<RevealMode, 'argument'>, string>> = {
  mutation: 'This relay reveals payloads to administrators by revealPayload alone, with a reason (REVEAL=mutation).',
  off: 'This relay reveals no payloads to administrators (REVEAL=off).',
};

/** Creates the API by which payloads are revealed. */
export function createReveals(deps: Deps) {
  const { audit, reveal: mode } = deps;
  return {
    /**
     * Whether listings show payloads to this requester. Users see their own payloads in every mode. Administrators see
     * all payloads in mode `argument`, and none in the other modes.
     */
    shows: (requester: Requester): boolean => requester?.kind !== 'admin' || mode === 'argument',
    /**
     * Whether the requester is the administrator who invoked this command, who may read the command's answer in every
     * mode.
     */
    ownsCall: (requester: Requester, command: Command): boolean =>
      requester?.kind === 'admin' && isCallOf(command, requester),
    /**
     * Writes the audit row of an administrator's read. The payload may be shown when this resolves. Throws
     * `audit_unavailable`, and `forbidden` if `shows` returns false. Does nothing for users, because they read payloads
     * of their own.
     */
    read(requester: Requester, subject: AuditSubject, requestId: string | null): MaybePromise<void> {
      if (requester?.kind !== 'admin') return;
      if (mode !== 'argument') fail('forbidden', HINTS[mode]);
      return audit.record(requester, { action: 'payload', subject, requestId }).then(() => {});
    },
    /**
     * Writes the audit row of an administrator who reads payloads for a stated reason, such as those of a subscription.
     * The payloads may be shown when this resolves. Throws `invalid_argument` if the reason is too short or too long,
     * `forbidden` in mode `off`, `rate_limited` beyond REVEALS_PER_HOUR, and `audit_unavailable`. Does nothing for
     * users, because they read payloads of their own.
     */
    async readFor(requester: Requester, { subject, reason, requestId }: ReasonedRead): Promise<void> {
      checkReason(reason);
      if (requester?.kind !== 'admin') return;
      if (mode === 'off') fail('forbidden', HINTS.off);
      const act = await audit.record(requester, { action: 'reveal', subject, reason, requestId, rate: RATE });
      await act.end('revealed');
    },
    /**
     * Reveals one payload for a stated reason. Throws `not_found` if the payload does not exist, belongs to another
     * user or is no longer retained; `forbidden` for an administrator in mode `off`; `rate_limited` beyond
     * REVEALS_PER_HOUR; and `audit_unavailable`. Users reveal their own payloads without an audit row.
     */
    async reveal(requester: Requester, { target, reason, requestId }: RevealRequest): Promise<RevealedPayload> {
      const principal = requirePrincipal(requester);
      const found = await find(deps, checkTarget(requester, target));
      checkReason(reason);
      if (principal.kind === 'admin' && mode === 'off') fail('forbidden', HINTS.off);
      if (!found) notFound();
      if (principal.kind !== 'admin') return (await payloadOf(deps, requester, found)) ?? notFound();
      const act = await audit.record(principal, {
        action: 'reveal',
        subject: found.subject,
        reason,
        requestId,
        rate: RATE,
      });
      const revealed = await payloadOf(deps, requester, found);
      await act.end(revealed ? 'revealed' : 'not_found');
      return revealed ?? notFound();
    },
  };
}

function checkReason(reason: string): void {
  if (reason.trim().length >= REVEAL_REASON_MIN && reason.length <= MAX_REASON) return;
  invalid('reason', `expected ${REVEAL_REASON_MIN} to ${MAX_REASON} characters`);
}

/** Returns the target with the canonical user id. Throws `not_found` for another user. */
function checkTarget(requester: Requester, target: RevealTarget): RevealTarget {
  const given = 'key' in target ? target.key.userId : target.userId;
  const userId = knownUser(requester, given) ?? notFound();
  if ('key' in target) return { ...target, key: { ...target.key, userId } };
  id('command_id', target.commandId);
  if (target.kind !== 'message') id('client_id', target.clientId);
  return { ...target, userId };
}

/**
 * Where the payload is: in a message that was read, or in the result of a command, which is read only after the audit
 * row is written.
 */
type FoundPayload =
  | { readonly subject: AuditSubject; readonly message: Message }
  | { readonly subject: AuditSubject; readonly result: CommandKey };

async function find(deps: Deps, target: RevealTarget): Promise<FoundPayload | null> {
  if (target.kind === 'command_result') {
    const { userId, clientId, commandId } = target;
    const key = { userId, clientId, commandId };
    return { subject: key, result: key };
  }
  const message = await findMessage(deps, target);
  if (!message || (message.payload === null && message.spill === null)) return null;
  const { userId, clientId, commandId, suffix, id: messageId } = message;
  const ids = { userId, stream: streamKey(userId, suffix), messageId };
  return {
    subject: { ...ids, ...(clientId !== null && { clientId }), ...(commandId !== null && { commandId }) },
    message,
  };
}

async function findMessage(
  { backend }: Deps,
  target: Exclude<RevealTarget, { kind: 'command_result' }>,
): Promise<Message | null> {
  if ('key' in target) return messageAt(backend.history, target.key);
  const { userId, commandId } = target;
  const { rows } = await backend.history.ofCommand(userId, commandId, { first: PAGE_MAX, after: null });
  const isTarget = (row: Message): boolean =>
    target.kind === 'message'
      ? row.id === target.messageId
      : row.kind === 'command' && row.clientId === target.clientId;
  return rows.find(({ row }) => isTarget(row))?.row ?? null;
}

async function payloadOf(deps: Deps, requester: Requester, found: FoundPayload): Promise<RevealedPayload | null> {
  if ('result' in found) return resultOf(deps, found.result);
  const [shown] = await readPayloads(deps, requester, [found.message]);
  const { at, spill } = found.message;
  const expiresAt = spill?.expiresAt ?? at + deps.backend.history.retentionMs;
  return shown?.text ? revealedPayload(deps, shown.text, expiresAt) : null;
}

async function resultOf(deps: Deps, key: CommandKey): Promise<RevealedPayload | null> {
  const { commands, history } = deps.backend;
  const [command] = await commands.get([key]);
  const result = command && isTerminal(command) ? await commands.result(key) : null;
  if (!command || result === null) return null;
  const keptMs = Math.min(commands.windowMs, history.retentionMs);
  return revealedPayload(deps, result, (command.terminalAt ?? command.deadline) + keptMs);
}

function revealedPayload({ crypto }: Deps, value: JsonText, expiresAt: number): RevealedPayload {
  return { value, digest: crypto.sha256(value), expiresAt };
}

/** The payload to reveal: the params or the result of a command, or the payload of one stored message. */
export type RevealTarget =
  | (CommandKey & { readonly kind: 'command_params' | 'command_result' })
  | { readonly kind: 'message'; readonly key: MessageKey }
  | { readonly kind: 'message'; readonly userId: string; readonly commandId: string; readonly messageId: string };

type RevealRequest = {
  readonly target: RevealTarget;
  /** Why the requester wants to read the payload: REVEAL_REASON_MIN to MAX_REASON characters. */
  readonly reason: string;
  readonly requestId?: string | null | undefined;
};

/**
 * A revealed payload. `digest`: the SHA-256 of its JSON text, as base64url. `expiresAt`: when the payload is removed at
 * the latest, in epoch milliseconds.
 */
export type RevealedPayload = { readonly value: JsonText; readonly digest: string; readonly expiresAt: number };
