import type { Cancel } from '../clock.ts';
import type { Invocation, OnStage } from '../core.ts';
import type { DeliveryActs } from '../delivery/acts.ts';
import { isTerminal, type Command } from '../delivery/command.ts';
import type { Reply, WaitFor } from '../delivery/waiter.ts';
import type { Deps } from '../deps.ts';
import { commandKeyText } from '../ids.ts';
import { andThen } from '../maybe.ts';
import type { Correlator } from './correlator.ts';

export type WaitParts = { readonly deps: Deps; readonly correlator: Correlator; readonly acts: DeliveryActs };

/** What the caller does while it waits: may hang up, may listen. */
export type CallerSide = { readonly signal?: AbortSignal | undefined; readonly onStage?: OnStage | undefined };

export type Wait = CallerSide & {
  readonly reply: Promise<Reply>;
  readonly rpcId: string;
  readonly command: Command;
  readonly waitFor: WaitFor;
  /** The caller's own budget; null: as long as the command lives. */
  readonly withinMs: number | null;
};

/** After a deadline, how long the reply of the settled command may take before the record is read instead. */
const REPLY_GRACE_MS = 1_000;

export function expectReply({ correlator }: WaitParts, rpcId: string): Promise<Reply> {
  return correlator.expect(rpcId);
}

/**
 * Waits for the reply, the caller's own budget, its hanging up, or the command's deadline, whichever comes first. Every way out removes the
 * waiter; none but the deadline touches the command.
 */
export async function waitForReply(parts: WaitParts, wait: Wait): Promise<Invocation> {
  const { reply, rpcId, command, waitFor, withinMs } = wait;
  if (parts.correlator.released) return giveUp(parts, wait);
  const until = withinMs === null ? null : parts.deps.clock.now() + withinMs;
  parts.correlator.know({ rpcId, command, waitFor, until });
  const ends = [deadlines(parts, command), ownBudget(parts, wait), hangUp(wait.signal)];
  const stopTelling = tellStages(parts, wait);
  try {
    const first = await Promise.race([reply, ...ends.map(({ ended }) => ended)]);
    if (first)
      return {
        kind: isTerminal(first.command) ? 'outcome' : 'pending',
        command: first.command,
        rpcId,
        result: first.result,
      };
    return await giveUp(parts, wait);
  } finally {
    stopTelling();
    for (const { cancel } of ends) cancel();
  }
}

/** Listens before it reads, so that the last move is not missed. What cannot be read is a stage that is skipped. */
function tellStages({ deps }: WaitParts, { command, onStage }: Wait): Cancel {
  if (!onStage) return () => {};
  const { commands, bus } = deps.backend;
  let told: Command | null = null;
  let over = false;
  const tell = (now: Command | undefined | null): void => {
    if (over || !now || isTerminal(now) || now.stage === told?.stage || now.version < (told?.version ?? 0)) return;
    told = now;
    onStage(now);
  };
  const read = async (): Promise<void> => andThen(commands.get([command]), ([now]) => tell(now));
  const reread = (): void => void read().catch(() => {});
  tell(command);
  const stop = bus.subscribe(`command:${commandKeyText(command)}`, ({ progress }) => progress ?? reread());
  reread();
  return () => {
    over = true;
    stop();
  };
}

type Ending = { readonly ended: Promise<null>; readonly cancel: () => void };

/** At the connect deadline and at the deadline the command is settled at once; its reply follows. Reconciliation does it where this node is gone. */
function deadlines({ deps, acts }: WaitParts, command: Command): Ending {
  const { clock } = deps;
  const { promise, resolve } = Promise.withResolvers<null>();
  const settle = (): void => {
    acts
      .settle(command, { kind: 'expire' })
      .catch((error: unknown) => deps.log.warn({ err: error }, 'a deadline is left to reconciliation'));
  };
  const until = (at: number): number => Math.max(0, at - clock.now());
  const cancels = [
    ...(command.queuedAt === null ? [clock.after(until(command.connectDeadline), settle)] : []),
    clock.after(until(command.deadline), settle),
    clock.after(until(command.deadline) + REPLY_GRACE_MS, () => resolve(null)),
  ];
  return { ended: promise, cancel: () => cancels.forEach((cancel) => cancel()) };
}

function ownBudget({ deps }: WaitParts, { withinMs }: Wait): Ending {
  const { promise, resolve } = Promise.withResolvers<null>();
  const cancel = withinMs === null ? () => {} : deps.clock.after(withinMs, () => resolve(null));
  return { ended: promise, cancel };
}

function hangUp(signal: AbortSignal | undefined): Ending {
  const { promise, resolve } = Promise.withResolvers<null>();
  const stop = (): void => resolve(null);
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  return { ended: promise, cancel: () => signal?.removeEventListener('abort', stop) };
}

async function giveUp({ deps, correlator }: WaitParts, { rpcId, command }: Wait): Promise<Invocation> {
  const { commands, waiters } = deps.backend;
  correlator.forget(rpcId);
  await waiters.remove(command, rpcId);
  const [now] = await commands.get([command]);
  const present = now ?? command;
  const result = isTerminal(present) ? await commands.result(present) : null;
  return { kind: isTerminal(present) ? 'outcome' : 'pending', command: present, rpcId, result };
}
