/** Tests which address processes that own partitions name as the home of a user. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { OwnedBackend } from '../../src/backends/owned/open.ts';
import type { NodeReport } from '../../src/core/commands/node-store.ts';
import { systemClock } from '../../src/platform/system.ts';
import { ownedPlace, type OwnedPlace } from '../kit/owned.ts';
import { eventually } from '../kit/patience.ts';

const LEASE_MS = 700;
const URL_OF_B = 'wss://b.relays.example/connect';
const URL_OF_C = 'wss://c.relays.example/connect';
/** So many that each process is to own some. */
const PARTITIONS = 32;
const USERS = Array.from({ length: 40 }, (_, i) => `user-${i}`);

const REPORT: NodeReport = {
  ...{ listenerAlive: true, reconciliationAlive: true, activeDrainers: 0, connectionWaiters: 0, links: 0 },
  ...{ unfinishedCommands: 0, draining: false, counters: new Map(), process: null },
};

let place: OwnedPlace;
let open: OwnedBackend[];
beforeEach(() => {
  place = ownedPlace(systemClock, PARTITIONS);
  open = [];
});
afterEach(async () => {
  for (const { backend } of open) await backend.close();
});

async function openOne(nodeId: string, address: string | null = null): Promise<OwnedBackend> {
  const opened = await place.open({ nodeId, address, scopeOf: (userId) => userId, leaseMs: LEASE_MS });
  open.push(opened);
  await opened.backend.nodes.attach(nodeId, { deliver() {}, lost: async () => {}, linksLost() {}, revived() {} });
  return opened;
}

async function openBoth(): Promise<readonly [OwnedBackend, OwnedBackend]> {
  return [await openOne('a'), await openOne('b', URL_OF_B)];
}

const homesAt = ({ backend }: OwnedBackend): readonly (string | null)[] =>
  USERS.map((userId) => backend.homeOf?.(userId) ?? null);
const isOwnedBy = ({ owners }: OwnedBackend): boolean => owners.owned.length > 0;

it('is that of the relay that owns the user, if it lives, takes links, and is another one', async () => {
  const [a, b] = await openBoth();
  await eventually(() => expect(isOwnedBy(b)).toBe(true));
  // It has not said yet that it takes links.
  expect(new Set(homesAt(a))).toEqual(new Set([null]));
  const told = new Set<string>();
  const stop = a.backend.onHome?.((concerns) => USERS.filter(concerns).forEach((userId) => told.add(userId)));
  await b.backend.nodes.beat('b', REPORT);
  await eventually(() => expect(homesAt(a)).toContain(URL_OF_B));
  const ofB = USERS.filter((userId) => a.backend.homeOf?.(userId) === URL_OF_B);
  // Those who are at home here, or whose relay has no address, are sent nowhere.
  expect(new Set(homesAt(b))).toEqual(new Set([null]));
  expect([...told].filter((userId) => a.backend.homeOf?.(userId) === URL_OF_B).sort()).toEqual(ofB.toSorted());
  await b.backend.nodes.beat('b', { ...REPORT, draining: true });
  await eventually(() => expect(homesAt(a)).not.toContain(URL_OF_B));
  await b.backend.nodes.beat('b', REPORT);
  await eventually(() => expect(homesAt(a)).toContain(URL_OF_B));
  await b.backend.close();
  expect(await eventually(() => (expect(homesAt(a)).not.toContain(URL_OF_B), true))).toBe(true);
  stop?.();
});

it('is told again to those whose owner is another one now', async () => {
  const [a, b] = await openBoth();
  await b.backend.nodes.beat('b', REPORT);
  await eventually(() => expect(homesAt(a)).toContain(URL_OF_B));
  const told = new Map<string, string | null>();
  a.backend.onHome?.((concerns) => {
    for (const userId of USERS.filter(concerns)) told.set(userId, a.backend.homeOf?.(userId) ?? null);
  });
  await b.backend.close();
  await eventually(() => expect(isOwnedBy(b)).toBe(false));
  const c = await openOne('c', URL_OF_C);
  await c.backend.nodes.beat('c', REPORT);
  await eventually(() => expect(homesAt(a)).toContain(URL_OF_C));
  for (const userId of USERS.filter((one) => a.backend.homeOf?.(one) === URL_OF_C))
    expect([userId, told.get(userId)]).toEqual([userId, URL_OF_C]);
});
