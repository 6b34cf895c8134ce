/** Asks the local authorizer, or the approver, whether a command may run. */
import { boundedMessage } from './errors.ts';
import type { ErrorSink } from '../link/guard.ts';
import { guarded } from '../link/guard.ts';
import type { ActionRequest, Judge } from './types.ts';

export type Judgement = {
  readonly judge: Judge | undefined;
  readonly request: ActionRequest;
  /** The message of the refusal if the judge gives no message. */
  readonly no: string;
  readonly onError: ErrorSink | undefined;
};

/**
 * Returns null when the judge allows the command, otherwise the reason. The command is also refused if the judge
 * throws, answers anything but a yes, or has not answered when the signal is aborted. `onError` receives what the judge
 * throws; the caller does not see it.
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

/** Resolves with false as soon as `signal` is aborted. Removes its listener when `done` is aborted. */
function abortOf(signal: AbortSignal, done: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(false);
    else signal.addEventListener('abort', () => resolve(false), { once: true, signal: done });
  });
}
