/** What tests may ask of the topology of the run: where its data is, how many relays it has, and what its store keeps. */
import { inject } from 'vitest';
import { PLACES, type Topology } from '../topologies.ts';

declare module 'vitest' {
  interface ProvidedContext {
    topology: Topology;
  }
}

/**
 * `STORE`: what decides about the data of the run. `RELAYS`: the number of relays that `openRelays` and `openCore` open.
 */
export const { store: STORE, relays: RELAYS } = PLACES[inject('topology')];
export const IS_DIRECT = STORE === 'memory';

/** Whether the store of the run has pauses, revocations, devices and times of hellos. That in which Redis decides has none. */
export const HAS_PAUSES = STORE !== 'redis';
export const HAS_REVOCATIONS = HAS_PAUSES;
export const HAS_DEVICES = HAS_PAUSES;
export const HAS_HELLO_TIMES = HAS_PAUSES;
/** Whether the store keeps the params of a dispatched command, so that one that never arrived is written again. */
export const KEEPS_PARAMS = STORE !== 'redis';

/** The names of the relays that are opened with the name `linked`, sorted: with two, the calls go to another one. */
export function nodesOf(linked: string): readonly string[] {
  return RELAYS === 1 ? [linked] : [linked, `${linked}-calls`];
}

/**
 * Returns the number of random runs of a property test: `ofMemory` in memory, and a tenth of it over Redis, which
 * answers far more slowly.
 */
export function numRuns(ofMemory: number): number {
  return IS_DIRECT ? ofMemory : Math.ceil(ofMemory / 10);
}
