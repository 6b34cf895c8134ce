import { endedByMark, isTerminal } from '../delivery/command.ts';
import type { Reply } from '../delivery/waiter.ts';
import { RELEASE_MS } from '../limits.ts';
import type { KnownWait } from './correlator.ts';
import type { WaitParts } from './wait.ts';

type Parts = Pick<WaitParts, 'deps' | 'correlator'>;

/**
 * This node goes away, and the commands live on: each of its callers is answered where its command stands, as `pending` unless it ended, and
 * its waiter is removed; who comes later is answered likewise at once. What the store does not say within RELEASE_MS is answered by what was
 * last known. Never rejects.
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
    deps.log.warn({ err: error }, 'a caller is answered by what was last known of its command');
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
