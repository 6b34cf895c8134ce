/** Calls functions of the library's user, so that what they throw does not disturb the library. */

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

function reportTo(onError: ErrorSink | undefined, error: unknown): void {
  try {
    const answer: unknown = onError?.(error);
    if (answer instanceof Promise) answer.catch(() => {});
  } catch {
    // The sink itself failed, so the error cannot be reported.
  }
}
