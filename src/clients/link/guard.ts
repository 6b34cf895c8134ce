export type ErrorSink = (error: unknown) => void;

/** Runs code that is not ours: what it throws, now or later, goes to the sink, and what the sink throws goes nowhere. */
export function guarded(run: () => unknown, onError: ErrorSink | undefined): void {
  try {
    const answer = run();
    if (answer instanceof Promise) answer.catch((error: unknown) => tell(onError, error));
  } catch (error) {
    tell(onError, error);
  }
}

function tell(onError: ErrorSink | undefined, error: unknown): void {
  try {
    const answer: unknown = onError?.(error);
    if (answer instanceof Promise) answer.catch(() => {});
  } catch {
    // The sink itself is broken: there is nobody left to tell.
  }
}
