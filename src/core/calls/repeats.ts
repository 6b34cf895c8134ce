/**
 * Finds earlier equal calls for callers whose protocol has no command ids (MCP), and decides whether the new call runs.
 * The command id of such a call consists of a digest of what it asks for, a digest of the agent, and a number. So equal
 * calls are found by their ids.
 */
import { requireScope, subjectOf, type Requester } from '../auth/principal.ts';
import { BoundedMap } from '../collections.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import { canonicalText, longerThan, type JsonText } from '../json.ts';
import { CallboardError } from '../errors.ts';
import type { NodeQuestions } from '../commands/node-questions.ts';
import { DIGEST_BYTES } from '../limits.ts';
import type { Clock } from '../ports.ts';
import { LABEL_IDS } from './call.ts';
import { isSettled, judge, type EarlierCall, type EqualCall } from './equal-calls.ts';
import { OwedAnswers, type OwedAnswer, type RequestName } from './owed-answers.ts';
import { ownUser } from './preflight.ts';
import type { WaitDeps } from './wait.ts';

/** The prefix of the command ids of these calls. No other caller may choose an id with this prefix. */
export const REPEATABLE_PREFIX = LABEL_IDS.mcp;

/**
 * A call that may repeat an earlier one. For one requester, two calls are equal if `userId`, `clientId` and the members
 * that are added here are equal.
 */
export type RepeatableCall = ClientKey &
  EqualCall & {
    /** The agent's session or, if it has none, its program. Only calls of the same agent are equal. */
    readonly agent: string;
    readonly action: string;
    readonly contextId: string | null;
    readonly params: JsonText | null;
  };

/**
 * The decision about a call. `new`: the call runs with this command id; null: the relay makes an id. `attach`: the call
 * gets the answer of the earlier equal call with this id. `refused`: the earlier call may have run, and the new call
 * does not name it. `foreign`: the earlier command that the call names is unknown or did something else.
 */
export type RepeatDecision =
  | {
      readonly kind: 'new';
      readonly commandId: string | null;
      /** See `Judgement` in `equal-calls.ts`. */
      readonly ranBeside: EarlierCall | null;
    }
  | { readonly kind: 'attach'; readonly commandId: string; readonly earlier: EarlierCall }
  | { readonly kind: 'refused'; readonly earlier: EarlierCall }
  | { readonly kind: 'foreign' };

/**
 * A decision. Until `leave` is called, this process decides about no equal call. Call `leave` as soon as it is known
 * whether the command was admitted.
 */
export type Entered = { readonly decision: RepeatDecision; leave(admitted: boolean): Promise<void> };

/**
 * Each span of time has its own range of numbers, counted up from the first. So a look-up of the first number of each
 * span finds the latest calls, even if the records of earlier spans are gone. In milliseconds.
 */
const SPAN_MS = 600_000;
const NUMBERS_PER_SPAN = 65_536;
/** How many earlier spans are searched: those of one hour, which is the default of the idempotency window. */
const SPANS_BACK = 6;
/** The most calls of one span that are read: the latest ones. */
const LOOK_BACK = 256;
/** The most records that are read at once. */
const READ_AT_ONCE = 64;
/** The most series that a process remembers. */
const SERIES = 10_000;
/** How often a decision is repeated if another node decides about the same earlier call at the same time. */
const ATTEMPTS = 20;

export type Repeats = ReturnType<typeof createRepeats>;

export function createRepeats({ deps, recorder }: Pick<WaitDeps, 'deps' | 'recorder'>, questions: NodeQuestions) {
  const { backend, clock, crypto } = deps;
  const owed = new OwedAnswers({ deps, recorder, questions });
  // A span lasts at most a third of the idempotency window. So the first id of this span and of the one before are
  // remembered while this span lasts.
  const spanMs = Math.min(SPAN_MS, Math.floor(backend.commands.windowMs / 3));
  const finder = new Finder(backend.commands, { spanMs, ttl: { ms: spanMs, clock } });
  const turns = new Turns();

  /**
   * Decides about a call. Returns null if another node has taken the answer of the same earlier call at the same time;
   * then the caller must decide again.
   */
  const decide = async (
    call: RepeatableCall,
    { series, answer }: { readonly series: CallSeries; readonly answer: OwedAnswer },
  ): Promise<{ readonly decision: RepeatDecision; readonly repeats: EarlierCall | null } | null> => {
    await owed.noted(series.prefix);
    const now = clock.now();
    const { found, next } = await finder.find(series, now);
    const calls = await Promise.all(
      found.map(async (earlier) => {
        const { command } = earlier;
        return { earlier, evidence: command ? await owed.evidenceOf(command) : ('none' as const) };
      }),
    );
    const judgement = judge(call, calls, now);
    if (judgement.kind === 'run') {
      const { ranBeside, repeats } = judgement;
      return { decision: { kind: 'new', commandId: series.id(next), ranBeside }, repeats };
    }
    const { earlier } = judgement;
    if (judgement.kind === 'refuse') return { decision: { kind: 'refused', earlier }, repeats: null };
    if (!(await takeOver(earlier, answer))) return null;
    return { decision: { kind: 'attach', commandId: earlier.commandId, earlier }, repeats: null };
  };

  /** Moves the answer of an earlier call to this request. Returns false if another request got it first. */
  const takeOver = async ({ command }: EarlierCall, { token }: OwedAnswer): Promise<boolean> => {
    if (command?.owedBy === undefined) return false;
    const settled = await recorder.settle(command, { kind: 'owed', by: token, instead: command.owedBy });
    return settled.kind !== 'unknown' && settled.command.owedBy === token;
  };

  /**
   * Records that a new call named this earlier one. Without this record, the next call must name the earlier call
   * again. Never rejects.
   */
  const repeated = async (key: CommandKey): Promise<void> => {
    try {
      await recorder.settle(key, { kind: 'repeated' });
    } catch (error) {
      deps.log.debug({ err: error }, 'it was not recorded that a call names an earlier one');
    }
  };

  return {
    /**
     * Registers the running request of an agent that invokes an action. `cancel` is called if the agent cancels the
     * request.
     */
    begin: (requester: Requester, name: Omit<RequestName, 'subject'>, cancel: () => void): OwedAnswer =>
      owed.begin({ ...name, subject: subjectOf(requireScope(requester, 'invoke')) }, cancel),
    /**
     * Cancels the running request that an agent names, and returns whether it did. If the agent has no session and
     * several running requests have this name, none is cancelled.
     */
    cancel: (requester: Requester, name: Omit<RequestName, 'subject'>): Promise<boolean> =>
      owed.cancel({ ...name, subject: subjectOf(requireScope(requester, 'invoke')) }),
    /**
     * Decides about a call by the records of earlier equal calls. If the decision is `attach`, the earlier call's
     * answer is owed to this request from now on. Throws the errors of `invoke` if the requester may not call the
     * client.
     */
    async enter(requester: Requester, call: RepeatableCall, answer: OwedAnswer): Promise<Entered> {
      const caller = requireScope(requester, 'invoke');
      const userId = ownUser(caller, call.userId);
      if (call.harmless) return { decision: { kind: 'new', commandId: null, ranBeside: null }, leave: async () => {} };
      const { sha256 } = crypto;
      const asked = sha256(askedText(subjectOf(caller), call));
      const series = seriesOf({ asked, agent: sha256(call.agent) }, { userId, clientId: call.clientId });
      if (call.repeatOf !== null && !series.has(call.repeatOf))
        return { decision: { kind: 'foreign' }, leave: async () => {} };
      const end = await turns.take(series.name);
      try {
        for (let n = 0; n < ATTEMPTS; n++) {
          const decided = await decide(call, { series, answer });
          if (!decided) continue;
          const { decision, repeats } = decided;
          let left: Promise<void> | null = null;
          const leave = (admitted: boolean): Promise<void> =>
            (left ??= (admitted && repeats ? repeated(series.keyOf(repeats.commandId)) : Promise.resolve()).then(end));
          return { decision, leave };
        }
        throw new CallboardError('store_unavailable', 'Other nodes decide about the same calls.');
      } catch (error) {
        end();
        throw error;
      }
    },
    /** Records that a caller received the whole answer about a command that another call had made. */
    async answered(requester: Requester, { userId, clientId, commandId }: CommandKey): Promise<void> {
      const caller = requireScope(requester, 'invoke');
      await recorder.settle({ userId: ownUser(caller, userId), clientId, commandId }, { kind: 'answered', by: null });
    },
  };
}

/** A lock for each series of equal calls: their decisions are made one after another. */
class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Waits for the lock of a series. Resolves with the function that releases it, which may be called more than once.
   */
  async take(name: string): Promise<() => void> {
    const before = this.#last.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(name, promise);
    await before;
    return () => {
      if (this.#last.get(name) === promise) this.#last.delete(name);
      resolve();
    };
  }
}

/** The command ids of one agent's equal calls. They differ only in their numbers. */
type CallSeries = {
  /** The name of the series, which no other series has. */
  readonly name: string;
  readonly prefix: string;
  id(number: number): string;
  keyOf(commandId: string): CommandKey;
  /** Whether a command asked for the same as this series, by any agent. */
  has(commandId: string): boolean;
};

/** How many characters of the agent's digest a command id contains. */
const AGENT_CHARS = 11;

function seriesOf(digests: { readonly asked: string; readonly agent: string }, client: ClientKey): CallSeries {
  const ofAll = `${REPEATABLE_PREFIX}${digests.asked}-`;
  const prefix = `${ofAll}${digests.agent.slice(0, AGENT_CHARS)}-`;
  return {
    name: JSON.stringify([client.userId, client.clientId, prefix]),
    prefix,
    id: (number) => prefix + String(number),
    keyOf: (commandId) => ({ ...client, commandId }),
    has: (commandId) => commandId.startsWith(ofAll),
  };
}

/**
 * Returns the text that equal calls have in common. Params of up to DIGEST_BYTES are compared by meaning, larger ones
 * by their text. The same rule holds for command ids that callers choose.
 */
function askedText(subject: string, { clientId, action, contextId, params }: RepeatableCall): string {
  const text = params ?? '{}';
  const compared = params === null || longerThan(params, DIGEST_BYTES) ? text : canonicalText(params);
  return `${JSON.stringify([subject, action, clientId, contextId])}${compared}`;
}

// Finds the earlier calls of a series.

/**
 * `found`: the earlier calls that matter for the decision, in the order of their numbers. `next`: the number for the
 * new call.
 */
type FoundCalls = { readonly found: readonly EarlierCall[]; readonly next: number };
type Numbered = { readonly number: number; readonly earlier: EarlierCall };
/**
 * What this process remembers of a series at time `span`. `next`: the next free number. `open`: the numbers below
 * `next` whose calls may still matter for a decision.
 */
type Remembered = { readonly span: number; readonly next: number; readonly open: readonly number[] };

class Finder {
  readonly #commands: WaitDeps['deps']['backend']['commands'];
  readonly #spanMs: number;
  readonly #series: BoundedMap<string, Remembered>;

  constructor(
    commands: WaitDeps['deps']['backend']['commands'],
    { spanMs, ttl }: { readonly spanMs: number; readonly ttl: { readonly ms: number; readonly clock: Clock } },
  ) {
    this.#commands = commands;
    this.#spanMs = spanMs;
    this.#series = new BoundedMap({ most: SERIES, order: 'used', ttl });
  }

  async find(series: CallSeries, now: number): Promise<FoundCalls> {
    const span = Math.floor(now / this.#spanMs);
    const known = this.#series.get(series.name);
    const { calls, next } =
      known?.span === span ? await this.#readOn(series, known) : await this.#readAll(series, span);
    const open = calls.filter(({ earlier }) => !isSettled(earlier, now));
    this.#series.set(series.name, { span, next, open: open.map(({ number }) => number) });
    return { found: open.map(({ earlier }) => earlier), next };
  }

  /** Reads the calls that were open at the last reading, and those that were made since. */
  async #readOn(series: CallSeries, { open, next }: Remembered): Promise<{ calls: Numbered[]; next: number }> {
    const calls = await this.#read(series, [...open, next]);
    if (calls.at(-1)?.number !== next) return { calls, next };
    const last = await this.#lastFrom(series, next);
    const newer = await this.#readTo(series, { first: next + 1, last });
    return { calls: [...calls, ...newer], next: last + 1 };
  }

  /**
   * Reads the calls of the last hour. The next span is searched too, because a clock that was ahead may have been set
   * back.
   */
  async #readAll(series: CallSeries, present: number): Promise<{ calls: Numbered[]; next: number }> {
    const firsts = Array.from({ length: SPANS_BACK + 2 }, (_, i) => firstOf(present - SPANS_BACK + i));
    const begun = await this.#read(series, firsts);
    const calls: Numbered[] = [];
    let next = firstOf(present);
    for (const { number: first } of begun) {
      const last = await this.#lastFrom(series, first);
      calls.push(...(await this.#readTo(series, { first, last })));
      next = Math.max(next, last + 1);
    }
    return { calls, next };
  }

  /** Finds the last of consecutive numbers with few look-ups: first in steps that double, then by bisection. */
  async #lastFrom(series: CallSeries, first: number): Promise<number> {
    const isKnown = async (number: number): Promise<boolean> => (await this.#read(series, [number])).length > 0;
    let last = first;
    let step = 1;
    for (; await isKnown(last + step); step *= 2) last += step;
    for (let absent = last + step; absent - last > 1;) {
      const middle = Math.floor((last + absent) / 2);
      if (await isKnown(middle)) last = middle;
      else absent = middle;
    }
    return last;
  }

  async #readTo(series: CallSeries, { first, last }: { readonly first: number; readonly last: number }) {
    const from = Math.max(first, last - LOOK_BACK + 1);
    return this.#read(
      series,
      Array.from({ length: Math.max(0, last - from + 1) }, (_, i) => from + i),
    );
  }

  /** Reads the calls with these numbers. The result leaves out numbers that no call has. */
  async #read(series: CallSeries, numbers: readonly number[]): Promise<Numbered[]> {
    const calls: Numbered[] = [];
    for (let at = 0; at < numbers.length; at += READ_AT_ONCE) {
      const part = numbers.slice(at, at + READ_AT_ONCE);
      const keys = part.map((number) => series.keyOf(series.id(number)));
      const records = await this.#commands.get(keys);
      const read = part.map(async (number, i): Promise<Numbered | null> => {
        const [command = null, key] = [records[i], keys[i]];
        if (command) return { number, earlier: { commandId: command.commandId, command, mark: null } };
        const mark = key && (await this.#commands.mark(key));
        return mark ? { number, earlier: { commandId: key.commandId, command: null, mark } } : null;
      });
      calls.push(...(await Promise.all(read)).filter((one) => one !== null));
    }
    return calls;
  }
}

function firstOf(span: number): number {
  return span * NUMBERS_PER_SPAN;
}
