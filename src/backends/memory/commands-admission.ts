/** Decides whether an admission is refused, and why. The rules change nothing, so previews use them too. */
import type { AdmitPreview, AdmitQuestion, AdmitRefusal, AdmitResult } from '../../core/commands/stores.ts';
import { satisfied } from '../../core/commands/command.ts';
import { QUEUE_PER_CLIENT, WAITERS_PER_COMMAND } from '../../core/limits.ts';
import { BORROWED_PART, SCOPE_SHARE } from '../../core/shares/shares.ts';
import type { Acts } from './commands-acts.ts';
import { paramsRefusal } from './commands-params.ts';
import type { ClientQueue, Entry } from './ledger.ts';
import type { UserLedger } from './ledger-entry.ts';

type Refused = Extract<AdmitResult, { readonly kind: 'refused' }>;

/** The data that the rules read about the command's client and its user. */
type ClientState = Pick<ClientQueue, 'binding' | 'holdings'> & {
  readonly waiting: { readonly size: number };
  readonly user: Pick<UserLedger, 'holdings' | 'unmarkedId'>;
};

/** Returns why an invocation may not attach to the existing command with its id, or null if it may. */
export function refuseAttach({ command, waiters }: Entry, { digest, waiter }: AdmitQuestion): Refused | null {
  if (command.digest !== digest) return { kind: 'refused', code: 'command_conflict' };
  const isFull = waiters.length >= WAITERS_PER_COMMAND && !satisfied(waiter.waitFor, command);
  return isFull ? { kind: 'refused', code: 'capacity_exceeded' } : null;
}

/** Returns why a command with an unknown id may not be admitted, or null if it may. */
export function refuseNew(acts: Acts, question: AdmitQuestion, client: ClientState): Refused | null {
  const target = refuseTarget(question, client);
  if (target) return { kind: 'refused', code: target };
  const scope = refuseScope(acts, question);
  if (scope) return scope;
  const code = refuseRoom(acts, question, client);
  if (code) return { kind: 'refused', code };
  const shortage = paramsRefusal(client, question.params);
  return shortage && { kind: 'refused', code: shortage, share: 'queued_bytes' };
}

function refuseTarget(
  { connectWithinMs, namedInstanceId }: AdmitQuestion,
  { binding }: ClientState,
): AdmitRefusal | null {
  if (!binding && connectWithinMs === 0) return 'not_connected';
  const isAnother = binding && namedInstanceId !== null && namedInstanceId !== binding.instanceId;
  return isAnother ? 'instance_mismatch' : null;
}

function refuseScope({ ledger }: Acts, question: AdmitQuestion): Refused | null {
  const { scopeId, scopeLimit, memberLimit, userId } = question;
  const reserved = ledger.reserved(scopeId);
  if (reserved >= scopeLimit) return { kind: 'refused', code: 'capacity_exceeded' };
  const isShort = memberLimit !== null && reserved + 1 > scopeLimit * BORROWED_PART;
  if (!isShort || ledger.reservedBy(scopeId, userId) < memberLimit) return null;
  return { kind: 'refused', code: 'share_exceeded', share: SCOPE_SHARE };
}

function refuseRoom({ ledger }: Acts, question: AdmitQuestion, client: ClientState): AdmitRefusal | null {
  if (client.waiting.size >= QUEUE_PER_CLIENT) return 'queue_full';
  return question.chosenId ? ledger.refuseChosen(client, question.commandId) : null;
}

/** Answers what an admission would do; see CommandStore. Creates no object for a user or client that has none. */
export function previewAdmission(acts: Acts, question: AdmitQuestion): AdmitPreview {
  const { ledger } = acts;
  const client = ledger.peekClient(question) ?? idleClient(acts, question);
  const ofKnown = question.chosenId ? answerOfKnown(acts, question) : null;
  return {
    answer: ofKnown ?? refuseNew(acts, question, client) ?? { kind: 'admitted' },
    known: ofKnown !== null,
    boundInstanceId: client.binding?.instanceId ?? null,
    reserved: ledger.reserved(question.scopeId),
    queued: client.waiting.size,
  };
}

/** Returns the answer for an id that is already known, or null if the id is unknown. */
function answerOfKnown({ ledger }: Acts, question: AdmitQuestion): AdmitPreview['answer'] | null {
  const known = ledger.find(question);
  if (known) return refuseAttach(known, question) ?? { kind: 'attached', command: known.command, result: known.result };
  const mark = ledger.mark(question, question.digest);
  if (mark === 'conflict') return { kind: 'refused', code: 'command_conflict' };
  return mark && { kind: 'ended', mark };
}

function idleClient({ ledger, holdingsOf }: Acts, { userId }: AdmitQuestion): ClientState {
  const user = ledger.peekUser(userId) ?? { holdings: holdingsOf(userId), unmarkedId: '' };
  return { binding: null, holdings: user.holdings, waiting: { size: 0 }, user };
}
