/**
 * Checks the arguments of a call against the schema of its action, in a worker with a time limit. Any client can
 * advertise a schema whose check never ends, such as one with the expression `^(a+)+$`, and the page must go on.
 */

export type ParamsFault = {
  /** The path of the faulty part: names and indexes joined with dots; empty for the whole value. */
  readonly at: string;
  readonly text: string;
  /** Whether the fault is that the text is not JSON. Such a text cannot be sent. */
  readonly syntax: boolean;
};

/** The result for a text: its faults, and a sentence if it was not checked. */
export type Checked = { readonly faults: readonly ParamsFault[]; readonly unchecked: string | null };

/** The time that the check of one text may take, in milliseconds. */
export const CHECK_MS = 1_000;
/** The time that the worker may take to start, in milliseconds. The page loads it from the relay. */
export const START_MS = 5_000;

export const TOO_SLOW = 'This schema takes too long to check here; the client checks the arguments again.';
export const NO_CHECK = 'The arguments cannot be checked here; the client checks them.';

/** A worker that runs `check-worker.ts`. */
export type CheckWorker = { readonly send: (message: ToWorker) => void; readonly end: () => void };

/** What a worker reports: its messages, and that it cannot run. */
export type CheckEvents = { readonly onMessage: (message: FromWorker) => void; readonly onError: () => void };

/** The first message has the schema, and each one after it a text to check. */
export type ToWorker = { readonly schema: unknown } | { readonly text: string };
/** `ready` follows the schema; the faults of each text follow the text. */
export type FromWorker = 'ready' | readonly ParamsFault[];

type CheckerOptions = {
  readonly schema: unknown;
  readonly startWorker: (events: CheckEvents) => CheckWorker;
  /** Runs a function after a time in milliseconds, and returns a function that prevents it. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** Receives the result for the text that was given last. Not called for a text that a later one has replaced. */
  readonly onChecked: (checked: Checked) => void;
};

export type Checker = { readonly check: (text: string) => void; readonly close: () => void };

/**
 * Creates a checker for one schema. At most one worker runs. A text that arrives during a check waits until the check
 * ends, and replaces a text that waits already. A check that exceeds CHECK_MS ends with its worker, and the next text
 * gets a new worker.
 */
export function createChecker({ schema, startWorker, after, onChecked }: CheckerOptions): Checker {
  let worker: CheckWorker | null = null;
  let state: 'starting' | 'idle' | 'checking' = 'starting';
  let waiting: string | null = null;
  let cancelTimer = (): void => {};

  const stop = (): void => {
    cancelTimer();
    worker?.end();
    worker = null;
  };
  const giveUp = (unchecked: string): void => {
    stop();
    const next = waiting;
    waiting = null;
    if (next === null || unchecked === NO_CHECK) onChecked({ faults: [], unchecked });
    else check(next);
  };
  const next = (): void => {
    state = 'idle';
    if (waiting === null || worker === null) return;
    const text = waiting;
    waiting = null;
    state = 'checking';
    cancelTimer = after(CHECK_MS, () => giveUp(TOO_SLOW));
    worker.send({ text });
  };
  const start = (): void => {
    state = 'starting';
    try {
      const started = startWorker({
        onMessage(message) {
          if (worker !== started) return;
          cancelTimer();
          if (message !== 'ready' && waiting === null) onChecked({ faults: message, unchecked: null });
          next();
        },
        onError: () => void (worker === started && giveUp(NO_CHECK)),
      });
      worker = started;
      cancelTimer = after(START_MS, () => giveUp(NO_CHECK));
      started.send({ schema });
    } catch {
      // The browser has no workers, or cannot copy a schema that nests too deep.
      giveUp(NO_CHECK);
    }
  };
  const check = (text: string): void => {
    waiting = text;
    if (worker === null) start();
    else if (state === 'idle') next();
  };
  return { check, close: stop };
}

/** Returns the fault of a text that is not JSON; null for JSON. */
export function syntaxFault(text: string): ParamsFault | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return { at: '', text: error instanceof Error ? error.message : 'This is not JSON.', syntax: true };
  }
}
