/**
 * Recognises calls that repeat an earlier one, for callers whose protocol has no command ids. The id of such a command
 * is made of what the call asks for and a number, so the records of commands say which identical calls came before.
 */
import { requireScope, subjectOf, type Requester } from '../auth/principal.ts';
import { isTerminal, type Command, type CommandMark } from '../commands/command.ts';
import type { CommandKey, ClientKey } from '../ids.ts';
import { canonicalText, longerThan, type JsonText } from '../json.ts';
import { AGENT_UNARRIVED_MS, DIGEST_BYTES } from '../limits.ts';
import { LABEL_IDS } from './call.ts';
import { ownUser } from './preflight.ts';
import type { WaitParts } from './wait.ts';

/** What the ids of these commands begin with. No other caller may choose such an id. */
export const REPEATABLE_PREFIX = LABEL_IDS.mcp;

/** What a call asks for. Two calls of one requester are identical if all members but the last two are equal. */
export type RepeatableCall = ClientKey & {
  readonly action: string;
  readonly contextId: string | null;
  readonly params: JsonText | null;
  /** The earlier command that this call runs again on purpose; null: the call names none. */
  readonly repeatOf: string | null;
  /** Whether a second run does no harm: the action is advertised as idempotent or as read-only. */
  readonly harmless: boolean;
};

/** An earlier identical call: its record, or the mark that is left of it. */
export type EarlierCall = { readonly commandId: string } & (
  { readonly command: Command; readonly mark: null } | { readonly command: null; readonly mark: CommandMark }
);

/**
 * What becomes of a call. `new`: it is another run, with this id. `attach`: it gets the answer of an earlier identical
 * call, which has this id. That call has not ended, or its answer is not known to have reached a caller. `refused`: the
 * earlier one may have run, and the call does not name it. `foreign`: the call names an earlier command that did
 * something else, or that is not known.
 */
export type RepeatDecision =
  | { readonly kind: 'new'; readonly commandId: string }
  | { readonly kind: 'attach'; readonly commandId: string; readonly earlier: EarlierCall }
  | { readonly kind: 'refused'; readonly earlier: EarlierCall }
  | { readonly kind: 'foreign' };

/**
 * Numbers are counted up within a span of time, and begin anew with the next span. So the latest call is found by
 * looking up the first number of each span, although the ids of early ones are forgotten.
 */
const SPAN_MS = 600_000;
const NUMBERS_PER_SPAN = 65_536;
/** How many spans before the present one are looked at: an hour, the default of the idempotency window. */
const SPANS_BACK = 6;

export type Repeats = ReturnType<typeof createRepeats>;

export function createRepeats({ deps, acts }: Pick<WaitParts, 'deps' | 'acts'>) {
  const { backend, clock, crypto } = deps;
  const { commands } = backend;
  // A span is short enough for the first id of it and of the span before to be remembered while the span lasts.
  const spanMs = Math.min(SPAN_MS, Math.floor(commands.windowMs / 3));
  const lookUp = async (keys: readonly CommandKey[]): Promise<readonly (EarlierCall | null)[]> => {
    const records = await commands.get(keys);
    return Promise.all(
      keys.map(async (key, i): Promise<EarlierCall | null> => {
        const command = records[i];
        if (command) return { commandId: key.commandId, command, mark: null };
        const mark = await commands.mark(key);
        return mark && { commandId: key.commandId, command: null, mark };
      }),
    );
  };
  return {
    /**
     * Decides what becomes of a call, by the records of earlier identical calls. Reads only. Two identical calls that
     * are decided at the same time get the same id, so that one of them attaches to the other. Throws as `invoke` does
     * if the requester may not call the client.
     */
    async decide(requester: Requester, call: RepeatableCall): Promise<RepeatDecision> {
      const caller = requireScope(requester, 'invoke');
      const userId = ownUser(caller, call.userId);
      const series = seriesOf(crypto.sha256(askedText(subjectOf(caller), call)), { userId, clientId: call.clientId });
      const span = Math.floor(clock.now() / spanMs);
      const latest = await latestIn(series, span, lookUp);
      const isForeign = call.repeatOf !== null && !series.has(call.repeatOf);
      if (isForeign) return { kind: 'foreign' };
      const first = firstOf(span);
      if (latest === null) return { kind: 'new', commandId: series.id(first) };
      const again = { kind: 'new', commandId: series.id(Math.max(first, latest.number + 1)) } as const;
      return decided(latest.earlier, call, { again, now: clock.now() });
    },
    /**
     * Records that the answer of a command reached its caller, so that the next identical call is another run. Does
     * nothing if the command is live or unknown, or if only its mark is left.
     */
    async answered(requester: Requester, { userId, clientId, commandId }: CommandKey): Promise<void> {
      const caller = requireScope(requester, 'invoke');
      await acts.settle({ userId: ownUser(caller, userId), clientId, commandId }, { kind: 'answered' });
    },
  };
}

type Again = Extract<RepeatDecision, { kind: 'new' }>;

function decided(
  earlier: EarlierCall,
  { repeatOf, harmless }: RepeatableCall,
  { again, now }: { readonly again: Again; readonly now: number },
): RepeatDecision {
  const { commandId, command } = earlier;
  const attached: RepeatDecision = { kind: 'attach', commandId, earlier };
  if (command && !isTerminal(command)) return attached;
  const { outcome, execution } = command ?? earlier.mark;
  if (repeatOf === commandId || execution === 'not_written' || execution === 'refused_by_client') return again;
  if (outcome === 'outcome_unknown') return harmless ? again : { kind: 'refused', earlier };
  // A mark has no result to give, and does not say whether the answer arrived.
  if (command === null && harmless) return again;
  const endedAt = command ? command.terminalAt : earlier.mark.endedAt;
  const isDelivered = command?.answeredAt !== undefined;
  return isDelivered || now - (endedAt ?? now) > AGENT_UNARRIVED_MS ? again : attached;
}

/** The ids of identical calls, which differ in their numbers. */
type CallSeries = {
  id(number: number): string;
  key(number: number): CommandKey;
  has(commandId: string): boolean;
};

function seriesOf(digest: string, client: ClientKey): CallSeries {
  const prefix = `${REPEATABLE_PREFIX}${digest}-`;
  const id = (number: number): string => prefix + String(number);
  return {
    id,
    key: (number) => ({ ...client, commandId: id(number) }),
    has: (commandId) => commandId.startsWith(prefix),
  };
}

/** Params of up to DIGEST_BYTES are compared by meaning, larger ones by their text, as for ids that callers choose. */
function askedText(subject: string, { clientId, action, contextId, params }: RepeatableCall): string {
  const text = params ?? '{}';
  const compared = params === null || longerThan(params, DIGEST_BYTES) ? text : canonicalText(params);
  return `${JSON.stringify([subject, action, clientId, contextId])}${compared}`;
}

function firstOf(span: number): number {
  return span * NUMBERS_PER_SPAN;
}

type Found = { readonly number: number; readonly earlier: EarlierCall };
type LookUp = (keys: readonly CommandKey[]) => Promise<readonly (EarlierCall | null)[]>;

/** Finds the latest call of a series. The span after the present one counts too, because clocks may be set back. */
async function latestIn(series: CallSeries, present: number, lookUp: LookUp): Promise<Found | null> {
  const firsts = Array.from({ length: SPANS_BACK + 2 }, (_, i) => firstOf(present + 1 - i));
  const found = await lookUp(firsts.map((number) => series.key(number)));
  const at = found.findIndex((earlier) => earlier !== null);
  const [number, earlier] = [firsts[at], found[at]];
  if (number === undefined || !earlier) return null;
  return lastAfter({ number, earlier }, async (next) => {
    const [one = null] = await lookUp([series.key(next)]);
    return one && { number: next, earlier: one };
  });
}

/** Finds the last of consecutive numbers with few look-ups: in steps that double, and then by halves. */
async function lastAfter(first: Found, find: (number: number) => Promise<Found | null>): Promise<Found> {
  let last = first;
  let step = 1;
  for (let next = await find(last.number + step); next; next = await find(last.number + step)) {
    last = next;
    step *= 2;
  }
  for (let absent = last.number + step; absent - last.number > 1;) {
    const middle = Math.floor((last.number + absent) / 2);
    const found = await find(middle);
    if (found) last = found;
    else absent = middle;
  }
  return last;
}
