/** Calls the callbacks of the program. */

export type ErrorSink = (error: unknown) => void;

/** Runs a user's callback. Passes its errors and rejections to the sink, and ignores errors of the sink. */
export function guarded(run: () => unknown, onError: ErrorSink | undefined): void {
  try {
    const answer = run();
    if (answer instanceof Promise) answer.catch((error: unknown) => reportTo(onError, error));
  } catch (error) {
    reportTo(onError, error);
  }
}

/** Passes an error to the sink, and ignores what that throws. */
export function reportTo(onError: ErrorSink | undefined, error: unknown): void {
  if (onError) guarded(() => onError(error), undefined);
}
