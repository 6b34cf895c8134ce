/** What a command may touch of the process: given by bin.ts, and by tests. */
export type Io = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard output: what a command answers. */
  readonly print: (text: string) => void;
  /** Standard error: what went wrong. */
  readonly complain: (text: string) => void;
  /** Runs the callback at the first signal to stop; the next one ends the process at once. */
  readonly onStop: (stop: () => void) => void;
};

/** Thrown for wrong usage: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;
