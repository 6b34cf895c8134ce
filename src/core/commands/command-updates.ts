/** Watches one command: its changes, and the progress that its client reports. */
import { seesAction, type Sight } from '../auth/sight.ts';
import type { CommandHint } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { isStoreUnavailable, notFoundError } from '../errors.ts';
import { commandKeyText, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { createFeed, type Subscription } from '../live.ts';
import type { Cancel } from '../ports.ts';
import type { Holdings } from '../shares/shares.ts';
import { isTerminal, type Command } from './command.ts';

/** The interval at which a watched command is read again, in milliseconds, because hints may be lost in shared mode. */
const REREAD_MS = 1_000;

export type CommandUpdate = {
  readonly command: Command;
  readonly progress: JsonText | null;
  /** The number that the client gave the report of progress; null if it gave none, and without progress. */
  readonly number: number | null;
  readonly at: number;
};

/** How long a subscription waits for the admission of its command, and in whose share the wait counts. */
type AwaitedAdmission = { readonly withinMs: number; readonly holdings: Holdings };

/**
 * Watches a command. Subscribes before it reads, so that no change is missed. Emits each version that it reads once,
 * and progress as it arrives, in the order of its numbers. An update that says that the command ended has no progress:
 * if the command has ended when its progress is read, the progress comes with the state that was emitted last, and the
 * hint of the end follows. `key` is null for a command that the requester may not know of. A command that the sight
 * does not have fails as one that does not exist.
 */
export function watch(
  deps: Deps,
  key: CommandKey | null,
  sight: Pick<Sight, 'actions'>,
  awaited: AwaitedAdmission | null = null,
): Subscription<CommandUpdate> {
  const { backend, clock } = deps;
  let latest: Command | null = null;
  let lost = 0;
  let lastNumber: number | null = awaited ? 0 : null;
  let last: Promise<void> = Promise.resolve();
  const push = (command: Command, reported: Reported | null): void => {
    feed.push({ command, ...(reported ?? NO_PROGRESS), at: clock.now() }, lost);
    lost = 0;
  };
  const say = (command: Command, reported: Reported | null): void => {
    stopWaiting();
    if (!seesAction(sight, command.action)) return feed.fail(notFoundError());
    if (reported !== null && isTerminal(command)) {
      if (latest) push(latest, reported);
      return;
    }
    if (latest && command.version <= latest.version && reported === null) return;
    latest = command;
    push(command, reported);
    if (isTerminal(command)) feed.end();
  };
  const reread = (command: CommandKey, reported: Reported | null): void => {
    const turn = last.then(async () => {
      const [now] = await backend.commands.get([command]);
      if (now) say(now, reported);
      else if (latest || !awaited) feed.end();
    });
    // While a shared store is unavailable there is nothing to emit. The next read catches up.
    last = turn.catch((error: unknown) => {
      if (!backend.capabilities.shared || !isStoreUnavailable(error)) feed.fail(error);
    });
  };
  const hinted = (command: CommandKey, { progress, ...hint }: CommandHint): void => {
    if (progress === null) return reread(command, null);
    const number = hint.number ?? null;
    if (number !== null && lastNumber !== null) {
      if (number <= lastNumber) return;
      lost += number - lastNumber - 1;
    }
    lastNumber = number ?? lastNumber;
    reread(command, { progress, number });
  };
  const stopWaiting = awaited ? startWaiting(deps, awaited, () => feed.fail(notFoundError())) : () => {};
  const cancels: Cancel[] = [stopWaiting];
  if (key) {
    const topic = `command:${commandKeyText(key)}` as const;
    cancels.push(
      backend.bus.subscribe(
        topic,
        (hint) => hinted(key, hint),
        () => (lost = Math.max(1, lost)),
      ),
    );
    if (backend.capabilities.shared) cancels.push(clock.every(REREAD_MS, () => reread(key, null)));
  }
  const feed = createFeed<CommandUpdate>(() => cancels.forEach((cancel) => cancel()));
  if (key) reread(key, null);
  return feed.subscription;
}

/**
 * Counts the wait for an admission in the share `waits` until it is stopped. Calls `expired` when it takes too long.
 */
function startWaiting({ clock }: Deps, { withinMs, holdings }: AwaitedAdmission, expired: () => void): Cancel {
  holdings.claim('waits', 1);
  let isWaiting = true;
  const cancel = clock.after(withinMs, expired);
  return () => {
    if (!isWaiting) return;
    isWaiting = false;
    cancel();
    holdings.release('waits', 1);
  };
}

type Reported = Pick<CommandUpdate, 'progress' | 'number'>;
const NO_PROGRESS: Reported = { progress: null, number: null };
