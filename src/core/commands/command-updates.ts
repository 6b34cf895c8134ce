/** Watches one command: emits each change of its record, and the progress that its client reports. */
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

/**
 * How often a watched command is read again, in milliseconds. In shared mode hints may get lost, so reading on hints
 * alone is not enough.
 */
const REREAD_MS = 1_000;

export type CommandUpdate = {
  readonly command: Command;
  readonly progress: JsonText | null;
  /** The number of the progress report; null if the client did not number it, or if this update has no progress. */
  readonly number: number | null;
  readonly at: number;
};

/** How long a subscription waits for its command to be admitted. The wait counts in the share of `holdings`. */
type AwaitedAdmission = { readonly withinMs: number; readonly holdings: Holdings };

/**
 * Watches a command. It subscribes before it reads, so it misses no change. It emits each version that it reads once,
 * and progress as it arrives, in the order of its numbers. An update with the end of the command has no progress: if
 * the command ended before a report of progress could be emitted, the progress is emitted with the last live record,
 * and the end follows. `key` is null if the requester must not learn whether the command exists. If `sight` does not
 * include the command's action, the feed fails with `not_found`.
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
    // While a shared store is unavailable, nothing is emitted. The next read makes up for it.
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
 * Counts the wait for an admission in the share `waits`, until the returned function is called. Calls `expired` if the
 * wait takes longer than `withinMs`.
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
