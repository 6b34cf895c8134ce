/** Calls the program's callbacks in such a way that their errors cannot harm the library. */

export type ErrorSink = (error: unknown) => void;

/** Calls a callback. Passes what it throws, or rejects with, to `onError`. Ignores what `onError` throws. */
export function guarded(run: () => unknown, onError: ErrorSink | undefined): void {
  try {
    const answer = run();
    if (answer instanceof Promise) answer.catch((error: unknown) => reportTo(onError, error));
  } catch (error) {
    reportTo(onError, error);
  }
}

/** Passes an error to `onError`. Ignores what `onError` throws. */
export function reportTo(onError: ErrorSink | undefined, error: unknown): void {
  if (onError) guarded(() => onError(error), undefined);
}
