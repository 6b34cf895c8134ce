/**
 * The checks that an invocation passes before it reaches the store, in order. Both invocations and preflights run them.
 */
import type { CallingPrincipal } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { AdmitQuestion } from '../delivery/commands.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import { CallboardError, notFound } from '../errors.ts';
import type { PayloadStorage } from '../history/payload-storage.ts';
import { canonicalUser, type CommandKey } from '../ids.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { isShareRefusal, type Holdings } from '../shares/shares.ts';
import { refused, refusedShare, type InvokeRefusal } from './refusals.ts';
import type { CheckedInvoke } from './request.ts';
import type { WaitParts } from './wait.ts';

export type InvokeParts = WaitParts & {
  readonly keeper: PayloadStorage;
  readonly dispatcher: Pick<Dispatcher, 'claim' | 'settle'>;
  readonly isDraining: () => boolean;
};

/** An invocation whose requester and input were checked, with the state of its target. */
export type PreparedCall = {
  /** The principal that the policy is evaluated for. */
  readonly caller: CallingPrincipal;
  readonly key: CommandKey;
  readonly checked: CheckedInvoke;
  /** The connection of the target; null if it is not connected. */
  readonly live: Connection | null;
  /** The holdings of the caller. */
  readonly holdings: Holdings;
};

/** The layer does not apply to this call, and refuses nothing. */
export type SkippedLayer = { readonly kind: 'skipped'; readonly message: string };
/** The answer of a layer; null if it lets the call pass. A refusal does not contain the command's id yet. */
export type LayerAnswer = InvokeRefusal | SkippedLayer | null;

/** One check. Changes nothing. */
export type CallLayer = {
  readonly layer: 'policy' | 'relay' | 'action' | 'waits';
  readonly check: (parts: InvokeParts, call: PreparedCall) => MaybePromise<LayerAnswer>;
};

export const ID_IS_KNOWN: SkippedLayer = { kind: 'skipped', message: 'Not asked: the command id is known.' };
const NOT_CONNECTED: SkippedLayer = { kind: 'skipped', message: 'Not asked: the client is not connected.' };
const OTHER_INSTANCE: SkippedLayer = {
  kind: 'skipped',
  message: 'Not asked: another instance of the client is connected than the named one.',
};

/** The layers, in the order in which an invocation passes them. */
export const CALL_LAYERS: readonly CallLayer[] = [
  { layer: 'policy', check: checkPolicy },
  { layer: 'relay', check: (parts, call) => unlessKnown(parts, call, checkRelay(parts)) },
  { layer: 'action', check: (parts, call) => unlessKnown(parts, call, checkAction(call)) },
  { layer: 'waits', check: (_, { holdings }) => checkWaits(holdings) },
];

/** Returns the user whose client is called. Throws `not_found` if a user names another user. */
export function ownUser(caller: CallingPrincipal, given: string): string {
  const userId = canonicalUser(given);
  if (caller.kind === 'user' && caller.userId !== userId) notFound();
  return userId;
}

/** Returns the target's live connection as this process last saw it; null if it knows none. */
export function lastSeenConnection({ deps }: InvokeParts, key: CommandKey): Connection | null {
  const seen = deps.backend.connections.lastSeen?.(key) ?? null;
  return isLive(seen, deps.clock.now()) ? seen : null;
}

/** Reads the target's connection from the store; null if it is not live. */
export function liveConnection({ deps }: InvokeParts, key: CommandKey): MaybePromise<Connection | null> {
  return thenDo(deps.backend.connections.get([key]), ([connection = null]) =>
    isLive(connection, deps.clock.now()) ? connection : null,
  );
}

function checkPolicy({ deps }: InvokeParts, { caller, key, checked, live }: PreparedCall): InvokeRefusal | null {
  const target = { userId: key.userId, clientType: live?.clientType ?? null, action: checked.action };
  const decision = deps.policy.decide(caller, target);
  if (decision.allowed) return null;
  return refused('policy_denied', 'policy', `The policy rule "${decision.rule}" denies this invocation.`);
}

function checkRelay({ isDraining }: InvokeParts): InvokeRefusal | null {
  return isDraining()
    ? refused('draining', 'relay', 'This node admits no new commands.', { retryAfterMs: 1000 })
    : null;
}

/**
 * Refuses an action that the connected client does not advertise. The actions of a client that is not connected are not
 * known, so the layer does not apply.
 */
function checkAction({ checked, live }: PreparedCall): LayerAnswer {
  if (!live) return NOT_CONNECTED;
  if (checked.namedInstanceId !== null && checked.namedInstanceId !== live.instanceId) return OTHER_INSTANCE;
  if (live.actions.some(({ name }) => name === checked.action)) return null;
  return refused('action_not_advertised', 'target', 'The client does not advertise this action.');
}

/** Drops a refusal if the command id is known, because the outcome of a known command is replayed. */
function unlessKnown(
  { deps }: InvokeParts,
  { key, checked }: PreparedCall,
  answer: LayerAnswer,
): MaybePromise<LayerAnswer> {
  if (answer?.kind !== 'refused' || checked.commandId === null) return answer;
  const { commands } = deps.backend;
  return thenDo(commands.get([key]), ([known]) =>
    known ? ID_IS_KNOWN : thenDo(commands.mark(key), (mark) => (mark ? ID_IS_KNOWN : answer)),
  );
}

function checkWaits(holdings: Holdings): InvokeRefusal | null {
  const shortage = holdings.refusal('waits', 1);
  return shortage && refusedShare(shortage, 'waits');
}

/** Returns the refusal of an invocation whose params history cannot keep. Rethrows every other error. */
export function refusedParams(error: unknown): InvokeRefusal {
  if (!(error instanceof CallboardError) || !isShareRefusal(error.code)) throw error;
  return refused(error.code, 'capacity', error.message, { retryAfterMs: 1000, share: 'spilled_bytes' });
}

/** Returns the part of an admission that decides whether the store refuses it. */
export function admitQuestion({ deps }: InvokeParts, { key, checked }: PreparedCall): AdmitQuestion {
  const { id: scopeId, limit: scopeLimit, memberLimit = null } = deps.policy.scopeOf(key.userId);
  const { commandId, digest, namedInstanceId, params, connectWithinMs, waitFor } = checked;
  return {
    ...key,
    ...{ chosenId: commandId !== null, digest, scopeId, scopeLimit, memberLimit },
    ...{ namedInstanceId, params, connectWithinMs },
    waiter: { waitFor },
  };
}
