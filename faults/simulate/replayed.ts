/** Compares the memory of a relay with what a replay of its data directory gives. */
import { isDeepStrictEqual } from 'node:util';
import type { Backend } from '../../src/core/backend.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import { silentLog, type Clock } from '../../src/core/ports.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import type { Disk } from '../../src/backends/journal/disk.ts';
import { DataDirectory } from '../../src/backends/journal/files.ts';
import { recover } from '../../src/backends/journal/open.ts';
import { RecordRoom } from '../../src/backends/journal/room.ts';
import { RecordedState } from '../../src/backends/journal/state.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { KEPT_SHARES, shownHoldings, shownState } from '../lib/shown-state.ts';

type Live = { readonly backend: Backend; readonly shares: Shares; readonly clock: Clock };
type Kept = { readonly root: string; readonly disk: Disk };

/** Where a relay and a replay differ. `results`: in results alone, which may be left out while there is no room. */
export type Differences = { readonly results: readonly string[]; readonly others: readonly string[] };

/**
 * Returns what a relay shows that a replay of its directory does not, or shows otherwise. Everything must be recorded.
 * Completes in this turn of the event loop. The disk is changed as by a start.
 */
export async function differencesOf(live: Live, { root, disk }: Kept): Promise<Differences> {
  const directory = new DataDirectory(root, disk);
  const { clock } = live;
  const shares = createShares();
  const log = silentLog;
  const { sha256, randomToken } = createCrypto('simulation');
  const markSecret = Buffer.from(directory.keys({ randomToken })('marks')).toString('base64url');
  const state = new RecordedState({ clock, log, sha256, shares, room: new RecordRoom(), markSecret });
  recover(directory, state.replay, { clock, log, boot: disk.boot() });
  state.begin();
  state.replay.finish(clock.now());
  const commands = (await live.backend.inspector.list(ANY_COMMAND, { first: 1000, after: null })).rows.map(
    ({ row }) => row,
  );
  const keys = commands.map(({ userId, clientId, commandId }) => ({ userId, clientId, commandId }));
  const clients = [...new Map(keys.map((key) => [`${key.userId} ${key.clientId}`, key])).values()];
  const users = [...new Set(keys.map(({ userId }) => userId))];
  const what = { users, clients, keys };
  const here = { ...(await shownState(live.backend, what)), holdings: shownHoldings(live.shares, users, KEPT_SHARES) };
  const there = { ...(await shownState(state.ports, what)), holdings: shownHoldings(shares, users, KEPT_SHARES) };
  const all = differences('', here, there);
  const others = all.length === 0 ? [] : differences('', withoutResults(here), withoutResults(there));
  return { results: others.length === 0 ? all : [], others };
}

/** The members that a result which was left out changes. */
const OF_RESULTS: ReadonlySet<string> = new Set(['results', 'resultExpired', 'payload', 'payloadBytes', 'holdings']);

function withoutResults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutResults);
  if (!isParent(value)) return value;
  const kept = Object.entries(value).filter(([name]) => !OF_RESULTS.has(name));
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutResults(member)]));
}

/** Returns where two values differ, one line for each place. */
function differences(path: string, here: unknown, there: unknown): readonly string[] {
  if (isDeepStrictEqual(here, there)) return [];
  if (!isParent(here) || !isParent(there)) return [`${path} is ${textOf(here)}, replayed ${textOf(there)}`];
  const names = new Set([...Object.keys(here), ...Object.keys(there)]);
  return [...names].flatMap((name) => differences(`${path}.${name}`, here[name], there[name])).slice(0, 20);
}

function isParent(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function textOf(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 300);
}
