/** Carries out a schedule of faults, one after the other, and heals each one. */
import { ACTS } from './acts.ts';
import type { FaultLog } from '../log/log.ts';
import type { Fault } from '../plan/plan.ts';
import type { World } from '../world.ts';

export type Nemesis = {
  /** Carries out the schedule until it ends or is stopped. Resolves when the last started fault is healed. */
  run(): Promise<void>;
  stop(): void;
  /** The number of faults that were carried out. */
  readonly done: number;
};

/** The pause after a fault that took longer than planned, in milliseconds. */
const REST_MS = 2_000;

export function createNemesis(world: World, log: FaultLog, schedule: readonly Fault[]): Nemesis {
  const stopped = Promise.withResolvers<void>();
  let stop = false;
  let done = 0;
  const wait = async (ms: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.max(0, ms));
    await Promise.race([promise, stopped.promise]);
    clearTimeout(timer);
  };
  return {
    get done() {
      return done;
    },
    async run() {
      const from = performance.now();
      for (const fault of schedule) {
        await wait(Math.max(fault.atMs - (performance.now() - from), done > 0 ? REST_MS : 0));
        if (stop) return;
        await suffer(world, log, fault);
        done++;
      }
    },
    stop() {
      stop = true;
      stopped.resolve();
    },
  };
}

async function suffer(world: World, log: FaultLog, fault: Fault): Promise<void> {
  const { id, kind } = fault;
  log.write({ event: 'fault', id, kind, target: nameOf(world, fault), wall: Date.now() });
  const why = await ACTS[kind](world, fault, log);
  if (typeof why === 'string') log.write({ event: 'skipped', id, kind, why });
  log.write({ event: 'heal', id });
}

/** Returns the name of the fault's target, as the logs of the other processes write it. */
function nameOf({ relays }: World, { kind, target }: Fault): string {
  return kind.startsWith('relay-') ? (relays[target % relays.length]?.name ?? '') : String(target);
}
