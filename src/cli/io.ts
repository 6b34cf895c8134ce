/** Defines what commands use of the process: output, stop signals, a clock, and questions to a person. */
import { homedir } from 'node:os';
import type { Clock } from '../clients/link/platform.ts';
import { visibleLine, visibleText } from '../protocol/visible-text.ts';

/** The access of a command to its process. bin.ts provides it, and tests provide their own. */
export type Io = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes the output of a command to standard output. */
  readonly print: (text: string) => void;
  /** Writes errors to standard error. */
  readonly complain: (text: string) => void;
  /** Registers a callback for the first stop signal. A second signal ends the process at once. */
  readonly onStop: (stop: () => void) => void;
  /**
   * Registers a callback for an uncaught error: an exception, or a rejected promise. After the callback, the process
   * exits with the code CRASHED. Absent: nothing can be registered.
   */
  readonly onCrash?: (end: (error: unknown) => Promise<void>) => void;
  /** Ends the process at once with the code 0, even if work is in progress. */
  readonly endNow?: () => void;
  /** The clock of the operators' commands. Absent: the system's clock. */
  readonly clock?: Clock;
  /** Whether standard output is a terminal, so that its screen can be cleared. */
  readonly screen?: boolean;
  /** Clears the screen of the terminal. Absent if standard output is not a terminal. `main` provides it. */
  readonly clearScreen?: () => void;
  /** Asks a person. Resolves with the line that the person typed. Absent if no person can be asked. */
  readonly ask?: (question: string) => Promise<string>;
};

/** Returns the user's home directory. Null if `HOME` is not set and the system does not know the user. */
export function homeOf(env: Io['env']): string | null {
  if (env['HOME']) return env['HOME'];
  try {
    return homedir();
  } catch {
    return null;
  }
}

/** The control sequence that moves to the first line of the terminal and clears everything below. */
const CLEAR = '\u001b[H\u001b[J';

/**
 * Wraps `io` so that hidden characters are printed as their codes, such as `\u202e`. Clients choose many of the printed
 * texts, and a control sequence in one of them could control the terminal.
 */
export function withVisibleText(io: Io): Io {
  const { print, complain, ask, screen } = io;
  return {
    ...io,
    print: (text) => print(visibleText(text)),
    complain: (text) => complain(visibleText(text)),
    ...(ask && { ask: (question: string) => ask(visibleLine(question)) }),
    ...(screen && { clearScreen: () => print(CLEAR) }),
  };
}

export function isHttpUrl(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '');
}

/** Returns the message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
