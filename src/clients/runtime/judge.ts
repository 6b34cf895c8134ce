import { boundedMessage } from './errors.ts';
import type { ErrorSink } from '../link/guard.ts';
import { guarded } from '../link/guard.ts';
import type { ActionRequest, Judge } from './types.ts';

export type Judgement = {
  readonly judge: Judge | undefined;
  readonly request: ActionRequest;
  /** What is said when the judge gives no words of its own. */
  readonly no: string;
  readonly onError: ErrorSink | undefined;
};

/**
 * Null: allowed. Else why not. Fails closed: a judge that throws, that answers anything but a yes, or that has no answer when the signal is
 * aborted, said no; what it threw is told to `onError` and not to the caller.
 */
export async function refusalOf({ judge, request, no, onError }: Judgement): Promise<string | null> {
  if (!judge) return no;
  const aborted = new AbortController();
  try {
    const verdict = await Promise.race([judge(request), abortOf(request.signal, aborted.signal)]);
    if (verdict === true) return null;
    if (typeof verdict !== 'object' || verdict === null) return no;
    return verdict.allow === true ? null : boundedMessage(verdict.message ?? no);
  } catch (error) {
    guarded(() => onError?.(error), undefined);
    return no;
  } finally {
    aborted.abort();
  }
}

/** False as soon as `signal` is aborted; stops to listen when `done` is. */
function abortOf(signal: AbortSignal, done: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(false);
    else signal.addEventListener('abort', () => resolve(false), { once: true, signal: done });
  });
}
