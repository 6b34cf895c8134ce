/** Says in a few characters how the relay answered. */
import type { Answer } from '../judge.ts';

/** Returns `forbidden` if the sender may not send such an input at all, the code of a refusal, or the status. */
export function answerOf({ status, text }: Answer): string {
  const code = /"code":"(\w+)"/.exec(text.slice(0, 2_000))?.[1];
  if (code === 'forbidden') return 'forbidden';
  const isRefusal = status >= 400 || text.startsWith('{"errors"');
  return isRefusal && code !== undefined ? code : `${status}, ${text.length} characters`;
}
