/** Defines the type of the functions that carry out faults. */
import type { FaultLog } from '../log/log.ts';
import type { Fault } from '../plan/plan.ts';
import type { World } from '../world.ts';

/** Carries out one fault. Resolves when it is over, with the reason if it is impossible in this run. */
export type Act = (world: World, fault: Fault, log: FaultLog) => Promise<string | void>;
