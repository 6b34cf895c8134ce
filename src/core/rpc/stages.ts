/** Tells a caller the stages that its command reaches. */
import type { Cancel } from '../clock.ts';
import type { OnStage } from '../core.ts';
import { isTerminal, type Command } from '../delivery/command.ts';
import type { Deps } from '../deps.ts';
import { commandKeyText } from '../ids.ts';
import { thenDo } from '../maybe-promise.ts';

/**
 * Calls `onStage` with the present stage of a live command, and with each stage that it reaches before its end, until
 * the returned function is called. Subscribes before it reads, so that the last change is not missed. If a read fails,
 * that stage is skipped.
 */
export function notifyStages({ backend }: Deps, command: Command, onStage: OnStage): Cancel {
  const { commands, bus } = backend;
  let last: Command | null = null;
  let over = false;
  const tell = (now: Command | undefined | null): void => {
    if (over || !now || isTerminal(now) || now.stage === last?.stage || now.version < (last?.version ?? 0)) return;
    last = now;
    onStage(now);
  };
  const read = async (): Promise<void> => thenDo(commands.get([command]), ([now]) => tell(now));
  const reread = (): void => void read().catch(() => {});
  tell(command);
  const stop = bus.subscribe(`command:${commandKeyText(command)}`, ({ progress }) => progress ?? reread());
  reread();
  return () => {
    over = true;
    stop();
  };
}
