/**
 * The rule for equal calls: what becomes of a call of an agent, by what is known of each earlier call that asked for the
 * same. Pure.
 */
import { isTerminal, type Command, type CommandMark } from '../commands/command.ts';
import { AGENT_LONG_CALL_MS, AGENT_STILL_RUNNING_MS, AGENT_UNARRIVED_MS } from '../limits.ts';

/** An earlier equal call: its record, or the mark that is left of it. */
export type EarlierCall = { readonly commandId: string } & (
  { readonly command: Command; readonly mark: null } | { readonly command: null; readonly mark: CommandMark }
);

/** How far an earlier call came. `never_ran`: it is proven that its handler did not begin, or it was cancelled. */
type EarlierState = 'running' | 'reported' | 'never_ran' | 'unknown';

/** Whether the answer of a call is known to have been lost. */
export type AnswerEvidence = 'none' | 'lost';

/**
 * What an earlier call makes of an equal one. `attach`: it gets the end of the earlier call, now or once there is one.
 * `refuse`: the earlier call may have run, and nothing more is known.
 */
type Effect = 'run' | 'attach' | 'refuse';

/** The table of cases. An unknown outcome is evidence by itself. */
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

/** An earlier call with what is known of its answer. */
export type JudgedCall = { readonly earlier: EarlierCall; readonly evidence: AnswerEvidence };

/** A call that is judged. */
export type EqualCall = {
  /** The earlier call that this one runs again on purpose; null: it names none. */
  readonly repeatOf: string | null;
  /** Whether a second run does no harm: the action is advertised as idempotent or as read-only. */
  readonly harmless: boolean;
};

/**
 * What becomes of a call. `run`: it is a call of its own. `ranBeside`: an equal earlier call that took so long that its
 * host may have given it up and repeated it by this one, so that the action may run twice; null: there is none.
 * `repeats`: the earlier one that the call names.
 */
type Judgement =
  | { readonly kind: 'run'; readonly ranBeside: EarlierCall | null; readonly repeats: EarlierCall | null }
  | { readonly kind: 'attach' | 'refuse'; readonly earlier: EarlierCall };

/**
 * Judges a call by the earlier equal ones, which are given in the order of their admission. The answer of a lost call is
 * given before a call is refused for the sake of another one.
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

/** Whether the answer was written whole or, after an unknown outcome, whether a later call named this one. */
function isResolved({ command }: EarlierCall): boolean {
  return command?.answeredAt !== undefined;
}

/** Whether a host may have given a call up without a sign: it still runs, or ran for long. */
function mayBeGivenUp(earlier: EarlierCall, now: number): boolean {
  const { command } = earlier;
  if (!command || isTooOld(earlier, now)) return false;
  const { admittedAt, terminalAt } = command;
  return terminalAt === null ? now - admittedAt > AGENT_STILL_RUNNING_MS : terminalAt - admittedAt > AGENT_LONG_CALL_MS;
}

/** Whether no later call will be judged by this one, whatever happens. */
export function isSettled(earlier: EarlierCall, now: number): boolean {
  const { command } = earlier;
  const state = stateOf(earlier);
  if (state === 'running') return false;
  if (state === 'unknown' && !isResolved(earlier)) return false;
  if (command === null || isTooOld(earlier, now)) return true;
  if (mayBeGivenUp(earlier, now)) return false;
  return state === 'never_ran' || isResolved(earlier) || command.owedBy === undefined;
}
