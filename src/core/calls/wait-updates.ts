/** Reports to a waiting caller each stage that its command reaches, and the client's progress. */
import { isTerminal, type Command } from '../commands/command.ts';
import type { Deps } from '../deps.ts';
import { commandKeyText, type CommandKey } from '../ids.ts';
import { thenDo } from '../maybe-promise.ts';
import type { CallerSide, OnStage, ReportedProgress } from './call.ts';

/**
 * The most reports of progress that are buffered until the wait begins. Further reports are dropped and count as
 * missed.
 */
const EARLY_REPORTS = 100;

export type Updates = {
  /** Begins to call the caller's functions. `command`: the command as it is now. */
  begin(command: Command): void;
  /** Stops calling the caller's functions. Idempotent. */
  stop(): void;
};

/**
 * Subscribes to the changes of a command. After `begin`, it calls `onStage` with the present stage and with each later
 * one except the last, which the answer itself reports. It calls `onProgress` with each report of progress, including
 * those that came before `begin`. It subscribes before it reads the record, so it misses no change. If a read fails, it
 * skips that stage.
 */
export function createUpdates(deps: Deps, key: CommandKey, { onStage, onProgress }: CallerSide): Updates {
  const { commandId } = key;
  let stages: ReturnType<typeof createStageReader> | undefined;
  let early: ReportedProgress[] | null = [];
  let lastNumber = 0;
  const report = (progress: ReportedProgress): void => {
    const { number } = progress;
    // Reports may arrive out of order. A report that arrives after a later one is dropped and counts as missed.
    if (number !== null && number <= lastNumber) return;
    lastNumber = number ?? lastNumber;
    onProgress?.(progress);
  };
  const stop = deps.backend.bus.subscribe(`command:${commandKeyText(key)}`, ({ progress: payload, number = null }) => {
    if (payload === null) return stages?.read();
    if (early === null) return report({ commandId, payload, number });
    if (early.length < EARLY_REPORTS) early.push({ commandId, payload, number });
  });
  return {
    begin(command) {
      stages = onStage && createStageReader(deps, command, onStage);
      early?.forEach(report);
      early = null;
      stages?.read();
    },
    stop() {
      stages?.stop();
      stop();
    },
  };
}

function createStageReader({ backend }: Deps, command: Command, onStage: OnStage) {
  const { commands } = backend;
  let last: Command | null = null;
  let over = false;
  const tell = (now: Command | undefined | null): void => {
    if (over || !now || isTerminal(now) || now.stage === last?.stage || now.version < (last?.version ?? 0)) return;
    last = now;
    onStage(now);
  };
  const read = async (): Promise<void> => thenDo(commands.get([command]), ([now]) => tell(now));
  tell(command);
  return {
    read: (): void => void read().catch(() => {}),
    stop: (): void => void (over = true),
  };
}
