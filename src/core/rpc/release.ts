/** Answers all callers that wait on this node when it closes. Their commands continue. */
import { endedByMark, isTerminal } from '../delivery/command.ts';
import type { Reply } from '../delivery/waiter.ts';
import { RELEASE_MS } from '../limits.ts';
import type { KnownWait } from './correlator.ts';
import type { WaitParts } from './wait.ts';
import { commandTraceFields } from '../trace-context.ts';

type Parts = Pick<WaitParts, 'deps' | 'correlator'>;

/**
 * Ends all waits on this node, because it shuts down while the commands live on. Each caller is answered with the
 * present state of its command (`pending` if it has not ended), and its waiter is removed. Later callers are answered
 * in the same way at once. If the store does not answer within RELEASE_MS, callers get the last known state. Never
 * rejects.
 */
export async function releaseWaits(parts: Parts): Promise<void> {
  const { deps, correlator } = parts;
  correlator.release();
  const waits = correlator.known();
  if (waits.length === 0) return;
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = deps.clock.after(RELEASE_MS, resolve);
  await Promise.race([late, Promise.all(waits.map((wait) => release(parts, wait)))]);
  cancel();
  for (const wait of correlator.known()) correlator.resolve(lastKnown(wait));
}

async function release({ deps, correlator }: Parts, wait: KnownWait): Promise<void> {
  const reply = await present(deps, wait).catch((error: unknown) => {
    const fields = { err: error, ...commandTraceFields(wait.command) };
    deps.log.warn(fields, 'could not read a command; its caller gets the last known state');
    return lastKnown(wait);
  });
  correlator.resolve(reply);
}

async function present({ backend }: Parts['deps'], { rpcId, command }: KnownWait): Promise<Reply> {
  const { commands, waiters } = backend;
  await waiters.remove(command, rpcId);
  const [now = command] = await commands.get([command]);
  if (now === null) {
    const mark = await commands.mark(command);
    return { rpcId, command: mark ? endedByMark(command, mark) : command, result: null };
  }
  return { rpcId, command: now, result: isTerminal(now) ? await commands.result(now) : null };
}

function lastKnown({ rpcId, command }: KnownWait): Reply {
  return { rpcId, command, result: null };
}
