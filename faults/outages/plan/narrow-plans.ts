/** Lists the plans that test one kind of fault each. */
import type { PlanRow } from './plan.ts';

/** The size of a payload that is too large for a history row, in bytes. */
export const LARGE_BYTES = 24 * 1024;

/** The short plans with one kind of fault each. Planted mistakes show under them, and a correct relay survives them. */
export const NARROW_PLANS: readonly PlanRow[] = [
  { name: 'slow', says: 'slow handlers', kinds: [], faults: 0, workMs: 4_000 },
  {
    name: 'window',
    says: 'two clients, with more than their windows hold',
    kinds: [],
    faults: 0,
    clients: 2,
    workMs: 4_000,
  },
  {
    name: 'F6h',
    says: 'the connection to Redis lost for all relays at once, for longer than a lease',
    kinds: ['all-holes'],
    gap: [9_000, 10_000],
    hold: [12_000, 12_000],
    faults: 1,
    promises: ['amnesty'],
  },
  {
    name: 'F8d',
    says: 'replies of Redis dropped, one after the other',
    kinds: ['drop-reply'],
    gap: [2_000, 2_500],
    hold: [500, 500],
    faults: 12,
  },
  {
    name: 'F13f',
    says: 'clients killed; others report what those ran',
    kinds: ['clients-forge'],
    gap: [2_000, 3_000],
    faults: 2,
    workMs: 500,
  },
  {
    name: 'F14l',
    says: "clients' connections broken, which the relays notice late",
    kinds: ['links-late'],
    gap: [1_000, 3_000],
    hold: [1_500, 1_500],
    faults: 2,
  },
  {
    name: 'F17k',
    says: 'kill -9 of a relay with spilled payloads, while nothing removes them',
    kinds: ['relay-kill'],
    gap: [2_000, 3_000],
    faults: 2,
    bytes: LARGE_BYTES,
    promises: ['payloads'],
  },
];
