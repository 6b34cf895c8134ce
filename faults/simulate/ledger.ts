/**
 * What handlers did, what callers were told, and which frames a link received. Judges whether they agree, and whether
 * what must be in order was in order.
 */
import { parseDown } from '../../src/protocol/frame-codec.ts';
import type { DownFrame } from '../../src/protocol/frames.ts';
import type { End, Operation } from './linearize.ts';

/** The end of a call that the store does not know: it may have run, or not. */
export const LOST = 'store_lost';

/** What a call asks its handler to do: the params. */
export type Work = {
  /** How long the handler takes, in milliseconds, and how often it reports progress. */
  readonly ms: number;
  readonly steps: number;
  readonly fails: boolean;
  /** Whether the handler ignores that it shall stop. */
  readonly isStubborn: boolean;
  /** How long a text the result has. */
  readonly chars: number;
};

type HandlerEnd =
  | { readonly kind: 'completed' | 'cancelled'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly message: string };

/** A handler that has begun. `end`: null while it runs, and for ever if its program ended. */
export type Run = { readonly by: string; reports: number; end: HandlerEnd | null };

/** An answer of a relay about a call. */
export type Told = {
  readonly outcome: string;
  readonly execution: string;
  readonly code: string | null;
  readonly message: string | null;
  /** The result, or the partial one. */
  readonly value: unknown;
};

export type Call = {
  readonly userId: string;
  readonly commandId: string;
  readonly work: Work;
  /** The context of the client that it names; null: none. */
  readonly contextId: string | null;
  /** How long it may wait for its client, and for the answer, in milliseconds. */
  readonly times: { readonly connectWithinMs: number; readonly respondWithinMs: number };
  readonly runs: Run[];
  readonly told: Told[];
  /** What was asked and answered about it, by whomever. */
  readonly history: Operation[];
  /** When it was asked first, in milliseconds of the simulation, and told last; Infinity: not told. */
  readonly askedAt: number;
  toldAt: number;
  /** How many requests for it have no answer yet that counts. */
  open: number;
  /** The number of the last report of progress that a caller got; 0: none. */
  heard: number;
};

/** The outcome as callers act on it. */
export function outcomeOf({ outcome, code }: Told): string {
  return code === LOST ? LOST : outcome;
}

/** Returns an end as the model of a command knows it. The client says so if it gave up what a handler had made. */
export function endIn({ outcome, execution, code, message }: Omit<Told, 'value'>, value: unknown): End {
  const isClosed = code === 'handler_failed' && message?.startsWith('The client closed') === true;
  const hasValue = outcome === 'completed' || outcome === 'cancelled';
  const text = hasValue && value !== null ? JSON.stringify(value) : null;
  return { outcome, execution, code: isClosed ? 'client_closed' : code, value: text };
}

/** Returns the end that a handler's client reports. */
export function reportedEnd(end: HandlerEnd): End {
  const code = end.kind === 'failed' ? 'handler_failed' : null;
  const value = 'value' in end ? end.value : null;
  return endIn({ outcome: end.kind, execution: 'reported_by_client', code, message: null }, value);
}

/** Returns what is wrong with the answers about a call. */
export function faultsOf({ commandId, runs, told }: Call): readonly string[] {
  const outcomes = [...new Set(told.map(outcomeOf))];
  const faults = told.map((one) => faultOf(one, runs)).filter((fault) => fault !== null);
  if (runs.length > 1) faults.push(`ran ${runs.length} times, by ${runs.map(({ by }) => by).join(' and ')}`);
  if (outcomes.length > 1) faults.push(`was told as ${outcomes.join(' and ')}`);
  return [...new Set(faults)].map((fault) => `${commandId} ${fault}`);
}

/** How far clocks go apart by their rates, and how long a frame takes at most, in milliseconds. */
const CLOCKS_MS = 2_000;
/** The part of a time after which a clock that goes too fast may say that it is over. */
const FAST = 0.97;

/**
 * Returns what came too early or too late: an end by a deadline that was not over, and a handler that began after the
 * deadline of its command, if a reader has seen that. `skewMs`: how far the clock of a relay, which sets deadlines, may be
 * wrong.
 */
export function timeFaultsOf(call: Call, skewMs: number): readonly string[] {
  const { commandId, times, history } = call;
  const { connectWithinMs, respondWithinMs } = times;
  const least: Readonly<Record<string, number>> = {
    connect_timeout: connectWithinMs,
    queue_timeout: connectWithinMs + respondWithinMs,
    response_timeout: connectWithinMs + respondWithinMs,
  };
  const faults: string[] = [];
  const deadlines = history.flatMap(({ claim }) => (claim?.kind === 'read' && claim.view ? [claim.view.deadline] : []));
  const deadline = Math.min(...deadlines);
  for (const { to, claim } of history) {
    const ms = claim?.kind === 'told' ? least[claim.end.code ?? ''] : undefined;
    if (ms !== undefined && to - call.askedAt < ms * FAST - CLOCKS_MS)
      faults.push(`${commandId} is over its time of ${ms} ms after ${to - call.askedAt}`);
    if (claim?.kind === 'begun' && to > deadline + CLOCKS_MS + skewMs)
      faults.push(`${commandId} begins ${to - deadline} ms after its deadline`);
  }
  return faults;
}

/** Returns how an answer differs from what handlers did; null if it does not. */
function faultOf(told: Told, runs: readonly Run[]): string | null {
  const { outcome, execution, code } = told;
  const what = `${outcome} (${execution}, ${code})`;
  const proven = outcome === 'expired' || execution === 'not_written' || execution === 'refused_by_client';
  if (proven && runs.length > 0) return `is ${what}, and ran`;
  if (execution !== 'reported_by_client') return null;
  const [run] = runs;
  if (!run) return `is ${what}, and never ran`;
  return endFault(told, run);
}

function endFault({ outcome, code, message, value }: Told, { end }: Run): string | null {
  // The client gave up a handler that was too slow, or a result, or all when it closed.
  if (outcome === 'failed' && (code !== 'handler_failed' || message?.startsWith('The client closed'))) return null;
  if (end?.kind !== outcome)
    return `is told as ${outcome}, and its handler ${end ? `has ${end.kind}` : 'has not ended'}`;
  if (end.kind === 'failed')
    return end.message === message ? null : `failed with "${end.message}", told as "${message}"`;
  if (code === 'result_expired') return null;
  const [returned, got] = [JSON.stringify(end.value), JSON.stringify(value)];
  return returned === got ? null : `returned ${returned.slice(0, 60)}, and its caller got ${String(got).slice(0, 60)}`;
}

/**
 * Returns a function that is told the progress of one request, and reports what is out of order. `missed`: how many
 * reports the caller was told to have missed; null if that is not told.
 */
export function progressWatch(call: Call, report: (fault: string) => void) {
  const { commandId, runs } = call;
  let last = 0;
  return (value: unknown, number: number | null, missed: number | null): void => {
    const at = `${commandId}: progress ${number} after ${last}`;
    if (number === null || number <= last) return report(`${at} is out of order`);
    if (missed !== null && missed !== number - last - 1) report(`${at} is said to have missed ${missed}`);
    if (JSON.stringify(value) !== JSON.stringify({ step: number })) report(`${at} says ${JSON.stringify(value)}`);
    if (number > (runs[0]?.reports ?? 0)) report(`${at}, of ${runs[0]?.reports ?? 0} reports`);
    last = number;
    call.heard = Math.max(call.heard, number);
  };
}

/** Returns a function that is told the messages of one link, and reports frames that may not come where they come. */
export function frameWatch(report: (fault: string) => void): (text: string) => void {
  const order = new FrameOrder();
  return (text) => {
    const frame = parseDown(text);
    const fault = frame ? order.faultOf(frame) : 'it cannot be read';
    if (fault !== null) report(`${fault}: ${text.slice(0, 200)}`);
  };
}

/** What has come over one link so far. */
class FrameOrder {
  #isWelcomed = false;
  #isLeft = false;
  #isOver = false;
  #atMs = 0;
  readonly #commands = new Set<string>();
  readonly #answered = new Set<string>();
  readonly #progress = new Map<string, number>();

  faultOf(frame: DownFrame): string | null {
    if (this.#isOver) return 'a frame comes after bye';
    if (frame.type === 'bye') this.#isOver = true;
    else if (frame.type === 'welcome') {
      if (this.#isWelcomed) return 'a second welcome comes';
      this.#isWelcomed = true;
    } else if (!this.#isWelcomed && frame.type !== 'refused') return 'a frame comes before welcome';
    return this.#timeFault(frame) ?? this.#commandFault(frame) ?? this.#answerFault(frame);
  }

  #timeFault(frame: DownFrame): string | null {
    const { at_ms: at = this.#atMs } = 'at_ms' in frame ? frame : {};
    if (at < this.#atMs) return `at_ms goes back from ${this.#atMs}`;
    this.#atMs = at;
    return null;
  }

  #commandFault(frame: DownFrame): string | null {
    if (frame.type === 'closed') this.#isLeft = true;
    if (frame.type !== 'command') return null;
    if (this.#isLeft) return 'a command comes after closed';
    if (this.#commands.has(frame.command_id)) return 'a command comes twice';
    this.#commands.add(frame.command_id);
    return null;
  }

  #answerFault(frame: DownFrame): string | null {
    if (!('ref' in frame) || frame.ref === undefined) return null;
    const { type, ref } = frame;
    if (this.#answered.has(ref)) return 'a frame comes after the answer';
    if (type === 'outcome' || type === 'refused' || type === 'receipt') this.#answered.add(ref);
    if (type !== 'progress' || frame.number === undefined) return null;
    const last = this.#progress.get(ref) ?? 0;
    this.#progress.set(ref, frame.number);
    return frame.number > last ? null : `progress comes after ${last}`;
  }
}
