/** Answers all callers that wait on this node when the node shuts down. Their commands go on. */
import { RELEASE_MS } from '../limits.ts';
import { commandTraceFields } from '../trace-context.ts';
import type { Correlator, KnownWait, NodeWaits } from './correlator.ts';
import { readPresent } from './wait.ts';

/**
 * Ends all waits on this node, because the node shuts down. The commands go on. Each caller gets the present state of
 * its command (`pending` if the command has not ended), and its waiter is removed from the store. Callers that come
 * later are answered in the same way at once. If the store does not answer within RELEASE_MS, callers get the last
 * known state if the store had recorded it, and an error otherwise. Never rejects.
 */
export async function releaseWaits(parts: NodeWaits): Promise<void> {
  const { deps, correlator } = parts;
  correlator.release();
  const waits = correlator.known();
  if (waits.length === 0) return;
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = deps.clock.after(RELEASE_MS, resolve);
  await Promise.race([late, Promise.all(waits.map((wait) => release(parts, wait)))]);
  cancel();
  for (const wait of correlator.known()) answerLastKnown(correlator, wait);
}

export async function release({ deps, correlator }: NodeWaits, wait: KnownWait): Promise<void> {
  try {
    correlator.resolve(await readPresent(deps, wait));
  } catch (error) {
    const fields = { err: error, ...commandTraceFields(wait.command) };
    deps.log.warn(fields, 'could not read a command; its caller gets the last known state');
    answerLastKnown(correlator, wait);
  }
}

/** Answers with the last known state, or with an error if the store has not recorded the command. */
function answerLastKnown(correlator: Correlator, { rpcId, command, isRecorded }: KnownWait): void {
  if (isRecorded) correlator.resolve({ rpcId, command, result: null });
  else correlator.refuse(rpcId);
}
