/**
 * Checks the arguments of a call against the action's schema, in a worker with a time limit. The limit is needed
 * because any client can advertise a schema whose check never ends, for example with the expression `^(a+)+$`.
 */

export type ParamsFault = {
  /** The path of the faulty part: names and indexes joined by dots; empty for the whole value. */
  readonly at: string;
  readonly text: string;
  /** Whether the text is not JSON. Such a text cannot be sent. */
  readonly syntax: boolean;
};

/** The result for a text. `unchecked`: a sentence about why it was not checked; null if it was. */
export type Checked = { readonly faults: readonly ParamsFault[]; readonly unchecked: string | null };

/** The time limit for checking one text, in milliseconds. */
export const CHECK_MS = 1_000;
/** The time limit for starting the worker, in milliseconds. The page loads the worker from the relay. */
export const START_MS = 5_000;

export const TOO_SLOW = 'This schema takes too long to check here; the client checks the arguments again.';
export const NO_CHECK = 'The arguments cannot be checked here; the client checks them.';

/** A worker that runs `check-worker.ts`. */
export type CheckWorker = { readonly send: (message: ToWorker) => void; readonly end: () => void };

/** Callbacks for what a worker reports: its messages, and that it cannot run. */
export type CheckEvents = { readonly onMessage: (message: FromWorker) => void; readonly onError: () => void };

/** A message to the worker. The first message contains the schema, and each later one a text to check. */
export type ToWorker = { readonly schema: unknown } | { readonly text: string };
/** A message from the worker: `ready` after the schema, and the faults after each text. */
export type FromWorker = 'ready' | readonly ParamsFault[];

type CheckerOptions = {
  readonly schema: unknown;
  readonly startWorker: (events: CheckEvents) => CheckWorker;
  /** Calls a function after this many milliseconds. Returns a function that cancels the call. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** Called with the result for the latest text. It is not called for a text that was replaced by a later one. */
  readonly onChecked: (checked: Checked) => void;
};

export type Checker = { readonly check: (text: string) => void; readonly close: () => void };

/**
 * Creates a checker for one schema. At most one worker runs. A text that arrives during a check waits until the check
 * ends, and replaces a text that already waits. If a check exceeds CHECK_MS, its worker is ended, and the next text
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
      // The browser has no workers, or cannot copy the schema because it is nested too deeply.
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

/** Returns the fault of a text that is not JSON; null if the text is JSON. */
export function syntaxFault(text: string): ParamsFault | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return { at: '', text: error instanceof Error ? error.message : 'This is not JSON.', syntax: true };
  }
}
