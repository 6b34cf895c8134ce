/** Defines what a command may use of the process: output, stop signals, a clock and questions to a person. */
import { homedir } from 'node:os';
import type { Clock } from '../clients/link/platform.ts';
import { visibleLine, visibleText } from '../protocol/visible-text.ts';

/** The parts of the process that a command may use. bin.ts provides them; tests provide their own. */
export type Io = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes the output of a command to standard output. */
  readonly print: (text: string) => void;
  /** Writes errors to standard error. */
  readonly complain: (text: string) => void;
  /** Registers a callback for the first stop signal; the second signal ends the process at once. */
  readonly onStop: (stop: () => void) => void;
  /**
   * Registers what happens after an error that nothing caught: an exception, or a rejected promise. Afterwards the
   * process exits with the code CRASHED. Absent: nothing is registered.
   */
  readonly onCrash?: (end: (error: unknown) => Promise<void>) => void;
  /** Ends the process at once with the code 0, whatever is still in progress. */
  readonly endNow?: () => void;
  /** The clock of the operators' commands. Absent: the system's clock. */
  readonly clock?: Clock;
  /** Whether standard output is a terminal, whose screen may be cleared. */
  readonly screen?: boolean;
  /** Clears the screen of the terminal. Absent if standard output is not a terminal. `main` provides it. */
  readonly clearScreen?: () => void;
  /** Asks a person and resolves with the line that was typed. Absent if no person can be asked. */
  readonly ask?: (question: string) => Promise<string>;
};

/** Returns the home directory of the user; null without `HOME` for a user whom the system does not know. */
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
 * Returns `io` with outputs that show hidden characters as their codes, such as `\u202e`. Clients choose many of the
 * texts that a command prints, and a control sequence among them would steer the terminal.
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
