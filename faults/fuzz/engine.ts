/** Sends the inputs of one kind to a relay, and finds inputs that cost too much or break it. */
import type { Input, Kind, KindName } from './kinds.ts';
import { FAST_CLOCK, type Target } from './target.ts';

/** The limit of CPU time of the main thread for one turn of the event loop, in milliseconds. */
export const TURN_MS = 100;
/** How long the relay's process may give no answer before an input counts as hung, in milliseconds. */
const SILENT_MS = 20_000;
/** The number of inputs in a batch. The relay is checked after each batch. */
const BATCH = 48;
/** The number of inputs of a batch that are sent at the same time. */
const LANES = 12;
/** By how much the stopped clock is advanced after each batch, in milliseconds. */
const STEP_MS = 1_000;

export type Finding = {
  readonly kind: KindName;
  readonly index: number;
  readonly what: string;
  readonly input: string;
};

export type KindReport = {
  readonly kind: KindName;
  /** The number of frames, requests or documents sent. */
  readonly sent: number;
  readonly seconds: number;
  readonly findings: readonly Finding[];
  /**
   * The most expensive turn of the event loop that a single input caused, and the input's index. Turns of batches,
   * which handle several inputs, are not counted.
   */
  readonly worst: { readonly ms: number; readonly index: number };
  /**
   * The number of batches with a turn above the limit which no input of the batch caused alone. Several inputs together
   * or a garbage collection caused it.
   */
  readonly together: number;
};

export type RunOptions = {
  readonly target: Target;
  readonly kind: Kind;
  /** The number of frames, requests or documents to send. The first input has the index `from`. */
  readonly count: number;
  readonly from: number;
  /** The run stops after this many inputs that cost too much, because each of them takes long. */
  readonly most: number;
  /** The limit of the main thread's CPU time for one turn, in milliseconds; default TURN_MS. */
  readonly turnMs?: number | undefined;
  readonly onFinding: (finding: Finding) => void;
};

/**
 * Sends inputs in batches, and checks the relay after each batch. The inputs of a suspicious batch are sent again one
 * by one.
 */
export async function runKind(options: RunOptions): Promise<KindReport> {
  const { target, kind, count, from, most } = options;
  const began = performance.now();
  const run = newRun(options);
  const inputs = Math.ceil(count / kind.countOfOne);
  if (kind.clock === 'fast') await target.relay.run(FAST_CLOCK);
  let dearest: { readonly ms: number; readonly inputs: readonly Input[] } = { ms: 0, inputs: [] };
  let sent = 0;
  for (let next = from; next < from + inputs && run.costly < most; next += BATCH) {
    const size = Math.min(BATCH, from + inputs - next);
    const batch = Array.from({ length: size }, (_, i) => kind.make(next + i, target));
    const ms = await run.batch(batch);
    if (ms > dearest.ms) dearest = { ms, inputs: batch };
    sent += batch.reduce((sum, input) => sum + input.count, 0);
    if (kind.clock === 'still') await target.relay.advance(STEP_MS);
  }
  if (dearest.ms <= (options.turnMs ?? TURN_MS)) for (const input of dearest.inputs) await run.alone(input);
  await target.relay.run(0);
  const seconds = (performance.now() - began) / 1000;
  return { kind: kind.name, sent, seconds, findings: run.findings, worst: run.worst, together: run.together };
}

function newRun({ target, kind, turnMs = TURN_MS, onFinding }: RunOptions) {
  const findings: Finding[] = [];
  let worst = { ms: 0, index: -1 };
  let together = 0;
  let costly = 0;
  let again = 0;

  const find = (input: Input, what: string): void => {
    if (findings.some(({ index, what: known }) => index === input.index && known === what)) return;
    const finding = { kind: kind.name, index: input.index, what, input: input.show() };
    findings.push(finding);
    onFinding(finding);
  };
  const send = async (input: Input, mark = ''): Promise<void> => {
    const problems = await input.send(target, mark).catch((error: unknown) => [`no answer: ${String(error)}`]);
    // If the relay has ended or hangs, each input of the batch may be the cause. It is found by sending each input
    // alone.
    if (target.relay.ended === null) for (const what of problems) find(input, what);
  };
  const look = () => target.relay.turns(SILENT_MS).catch(() => null);
  const revive = async (): Promise<void> => {
    await target.restart();
    if (kind.clock === 'fast') await target.relay.run(FAST_CLOCK);
  };

  /** Sends this input alone. Resolves with whether it causes a problem. */
  const alone = async (input: Input): Promise<boolean> => {
    await look();
    // `mark` makes the document new to the relay, so that its cache of documents does not hide the cost of reading it.
    const mark = `again ${again++}`;
    await sendPhases([input], (one) => send(one, mark), target);
    const seen = await look();
    if (seen === null) {
      costly++;
      find(input, target.relay.ended ?? `the relay did not answer for ${SILENT_MS} ms`);
      await revive();
      return true;
    }
    if (seen.worstMs > worst.ms) worst = { ms: seen.worstMs, index: input.index };
    for (const line of seen.errors) find(input, `logged: ${line.trim().slice(0, 300)}`);
    return seen.worstMs > turnMs || seen.errors.length > 0;
  };
  const confirm = async (input: Input): Promise<boolean> => {
    const before = findings.length;
    if (!(await alone(input))) return false;
    if (findings.length > before) return true;
    const first = worst.ms;
    // Sent again, because a garbage collection may delay one turn, but hardly the same turn twice.
    if (!(await alone(input))) return false;
    costly++;
    find(input, `a turn took ${Math.round(first)} ms of the main thread`);
    return true;
  };
  return {
    findings,
    get worst() {
      return worst;
    },
    get costly() {
      return costly;
    },
    get together() {
      return together;
    },
    alone,
    /** Sends these inputs concurrently. Returns the CPU time of the most expensive turn, in milliseconds. */
    async batch(inputs: readonly Input[]): Promise<number> {
      const before = findings.length;
      await sendPhases(inputs, send, target);
      const seen = await look();
      if (seen !== null && seen.worstMs <= turnMs && seen.errors.length === 0) return seen.worstMs;
      if (seen === null) await revive();
      let guilty = 0;
      for (const input of inputs) if (await confirm(input)) guilty++;
      if (guilty === 0 && seen !== null && seen.errors.length === 0) together++;
      const [first] = inputs;
      if (findings.length === before && first && (seen === null || seen.errors.length > 0))
        find(
          first,
          `one of ${inputs.length} inputs together: ${seen?.errors.join('; ').slice(0, 500) ?? 'the relay ended or hung'}`,
        );
      return seen?.worstMs ?? 0;
    },
  };
}

/** First sends the inputs that change nothing, and then, with the clock running, those that change stored state. */
async function sendPhases(
  inputs: readonly Input[],
  send: (input: Input) => Promise<void>,
  { relay }: Target,
): Promise<void> {
  await inLanes(
    inputs.filter(({ changes }) => !changes),
    send,
  );
  const changing = inputs.filter(({ changes }) => changes);
  if (changing.length === 0) return;
  await relay.run(FAST_CLOCK).catch(() => {});
  await inLanes(changing, send);
  await relay.run(0).catch(() => {});
}

async function inLanes(inputs: readonly Input[], send: (input: Input) => Promise<void>): Promise<void> {
  const left = inputs.values();
  const lane = async (): Promise<void> => {
    for (const input of left) await send(input);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}
