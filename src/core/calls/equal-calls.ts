/**
 * Decides whether an agent's call runs, gets the answer of an earlier equal call, or is refused. Two calls are equal if
 * they ask for the same. Pure functions.
 */
import { isTerminal, type Command, type CommandMark } from '../commands/command.ts';
import { AGENT_LONG_CALL_MS, AGENT_STILL_RUNNING_MS, AGENT_UNARRIVED_MS } from '../limits.ts';

/** An earlier equal call: its record, or the mark that remains after the record was removed. */
export type EarlierCall = { readonly commandId: string } & (
  { readonly command: Command; readonly mark: null } | { readonly command: null; readonly mark: CommandMark }
);

/**
 * How far an earlier call came. `reported`: the client reported how it ended. `never_ran`: it was cancelled, or it is
 * proven that its handler did not begin. `unknown`: it ended as `outcome_unknown`.
 */
type EarlierState = 'running' | 'reported' | 'never_ran' | 'unknown';

/** Whether there is proof that the agent did not receive the answer of a call (`lost`). */
export type AnswerEvidence = 'none' | 'lost';

/**
 * What an earlier equal call does to the new one. `run`: the new call runs as well. `attach`: the new call gets the
 * result of the earlier one, as soon as there is one. `refuse`: the earlier call may have run, and nobody knows how it
 * ended, so the new one must not run.
 */
type Effect = 'run' | 'attach' | 'refuse';

/**
 * The effect of an earlier call by what is known of its answer and by its state. An `unknown` call refuses even without
 * proof that its answer was lost.
 */
const EFFECTS: Readonly<Record<AnswerEvidence, Readonly<Record<EarlierState, Effect>>>> = {
  none: { running: 'run', reported: 'run', never_ran: 'run', unknown: 'refuse' },
  lost: { running: 'attach', reported: 'attach', never_ran: 'run', unknown: 'refuse' },
};

export function stateOf({ command, mark }: EarlierCall): EarlierState {
  if (command && !isTerminal(command)) return 'running';
  const { outcome, execution } = command ?? mark;
  if (outcome === 'outcome_unknown') return 'unknown';
  if (outcome === 'cancelled' || execution === 'not_written' || execution === 'refused_by_client') return 'never_ran';
  return 'reported';
}

function endedAtOf({ command, mark }: EarlierCall): number | null {
  return command ? command.terminalAt : mark.endedAt;
}

function isTooOld(earlier: EarlierCall, now: number): boolean {
  const endedAt = endedAtOf(earlier);
  return endedAt !== null && now - endedAt > AGENT_UNARRIVED_MS;
}

/** An earlier call, and whether its answer is known to be lost. */
export type JudgedCall = { readonly earlier: EarlierCall; readonly evidence: AnswerEvidence };

/** The call to decide about. */
export type EqualCall = {
  /** The earlier call that this call repeats on purpose; null if it names no earlier call. */
  readonly repeatOf: string | null;
  /** Whether a second run does no harm: the action is advertised as idempotent or as read-only. */
  readonly harmless: boolean;
};

/**
 * The decision about a call. `run`: it runs as a new call. `ranBeside`: an equal earlier call that took so long that
 * the host program may have given it up and sent this call in its place, so the action may run twice; null if there is
 * none. `repeats`: the earlier call that this one repeats on purpose.
 */
type Judgement =
  | { readonly kind: 'run'; readonly ranBeside: EarlierCall | null; readonly repeats: EarlierCall | null }
  | { readonly kind: 'attach' | 'refuse'; readonly earlier: EarlierCall };

/**
 * Decides about a call by the earlier equal calls, in the order of their admission. If one earlier call has a lost
 * answer and another one would refuse the new call, the new call gets the lost answer.
 */
export function judge({ repeatOf, harmless }: EqualCall, calls: readonly JudgedCall[], now: number): Judgement {
  const open = harmless ? [] : calls.filter(({ earlier }) => !isTooOld(earlier, now) || stateOf(earlier) === 'unknown');
  const effects = open
    .filter(({ earlier }) => !isResolved(earlier))
    .map(({ earlier, evidence }) => ({ earlier, effect: EFFECTS[evidence][stateOf(earlier)] }));
  const named = effects.find(({ earlier }) => earlier.commandId === repeatOf);
  if (named && named.effect === 'attach' && stateOf(named.earlier) === 'running')
    return { kind: 'attach', earlier: named.earlier };
  if (!named) {
    const stops =
      effects.find(({ effect }) => effect === 'attach') ?? effects.findLast(({ effect }) => effect === 'refuse');
    if (stops) return { kind: stops.effect === 'attach' ? 'attach' : 'refuse', earlier: stops.earlier };
  }
  const repeats = named && stateOf(named.earlier) !== 'running' ? named.earlier : null;
  const ranBeside = open.findLast(({ earlier }) => earlier !== repeats && mayBeGivenUp(earlier, now));
  return { kind: 'run', ranBeside: ranBeside?.earlier ?? null, repeats };
}

/**
 * Whether an earlier call needs no further answer: its whole answer was written, or it ended with an unknown outcome
 * and a later call named it.
 */
function isResolved({ command }: EarlierCall): boolean {
  return command?.answeredAt !== undefined;
}

/**
 * Whether the host program may have given up an earlier call without telling the relay. It may if the call still runs
 * after AGENT_STILL_RUNNING_MS, or took longer than AGENT_LONG_CALL_MS.
 */
function mayBeGivenUp(earlier: EarlierCall, now: number): boolean {
  const { command } = earlier;
  if (!command || isTooOld(earlier, now)) return false;
  const { admittedAt, terminalAt } = command;
  return terminalAt === null ? now - admittedAt > AGENT_STILL_RUNNING_MS : terminalAt - admittedAt > AGENT_LONG_CALL_MS;
}

/** Whether an earlier call can no longer affect the decision about any later call. */
export function isSettled(earlier: EarlierCall, now: number): boolean {
  const { command } = earlier;
  const state = stateOf(earlier);
  if (state === 'running') return false;
  if (state === 'unknown' && !isResolved(earlier)) return false;
  if (command === null || isTooOld(earlier, now)) return true;
  if (mayBeGivenUp(earlier, now)) return false;
  return state === 'never_ran' || isResolved(earlier) || command.owedBy === undefined;
}
