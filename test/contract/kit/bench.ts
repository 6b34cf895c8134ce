/**
 * Defines the bench with which contract tests work (a backend and its clock), and helpers that open nodes and dispatch
 * commands.
 */
import type { Backend } from '../../../src/core/backend.ts';
import type { Command, CommandCaller } from '../../../src/core/commands/command.ts';
import type { AdmitRequest, Binding, End } from '../../../src/core/commands/command-store.ts';
import type { MailboxRow } from '../../../src/core/commands/node-store.ts';
import type { WaiterFilter, WaiterStore } from '../../../src/core/commands/waiter-store.ts';
import type { ClientKey, CommandKey } from '../../../src/core/ids.ts';
import { toJson } from '../../../src/core/json.ts';
import type { MaybePromise } from '../../../src/core/maybe-promise.ts';
import type { PageRequest, Position, Scan } from '../../../src/core/page.ts';

/** A backend under test that has its namespace for itself, and control over its clock. */
export type Bench = {
  readonly backend: Backend;
  advance(ms: number): Promise<void>;
  now(): number;
  /** Sets the clock back, as the clocks of two nodes differ. No time elapses. */
  setBack(ms: number): void;
  close(): Promise<void>;
};
export type MakeBench = () => Promise<Bench>;

/**
 * Calls `act` for 0 to `count - 1`, in this order: up to `atOnce` calls begin together, because a store in another process
 * answers many calls in little more time than one.
 */
export async function inWaves<T>(count: number, atOnce: number, act: (i: number) => Promise<T>): Promise<void> {
  for (let from = 0; from < count; from += atOnce)
    await Promise.all(Array.from({ length: Math.min(atOnce, count - from) }, (_, i) => act(from + i)));
}

/** The limits of the backend's history, if they differ from those of core/limits.ts. */
export type HistoryBounds = {
  readonly streamMessages?: number;
  readonly retentionMs?: number;
  readonly streamsPerUser?: number;
  readonly linkMessages?: number;
  readonly linkBytes?: number;
  readonly bytes?: number;
};
export type MakeHistoryBench = (bounds?: HistoryBounds) => Promise<Bench>;

export const ALICE: ClientKey = { userId: 'alice', clientId: 'tab' };
/** The caller of the bench's commands and waits. */
export const CALLER: CommandCaller = { kind: 'user', name: 'alice' };
export const BOUND: Binding = { nodeId: 'n1', instanceId: 'i1', epoch: 1 };

export function keyFor(commandId: string, client: ClientKey = ALICE): CommandKey {
  return { ...client, commandId };
}

export function admission(commandId: string, over: Partial<AdmitRequest> = {}): AdmitRequest {
  return {
    ...keyFor(commandId),
    chosenId: true,
    action: 'open',
    digest: 'd1',
    scopeId: 'alice',
    scopeLimit: 100,
    memberLimit: null,
    namedInstanceId: null,
    clientType: 'browser',
    params: toJson({ n: 1 }),
    kept: { payload: toJson({ n: 1 }), spill: null },
    caller: CALLER,
    traceId: 't1',
    parentSpanId: 's1',
    traceFlags: '01',
    traceState: 'vendor=1',
    callSpan: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    connectWithinMs: 0,
    respondWithinMs: 30_000,
    waiter: { rpcId: `rpc-${commandId}`, caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null },
    ...over,
  };
}

export function ending(over: Partial<End> = {}): End {
  const payload = over.payload === undefined ? toJson({ ok: true }) : over.payload;
  const kept = { payload, spill: null };
  return { instanceId: 'i1', kind: 'result', payload, kept, error: null, refused: false, ...over };
}

/** Opens a node that collects its mailbox in a list. The test takes the rows after the acts that posted them. */
export async function openNode(
  bench: Bench,
  nodeId = 'n1',
): Promise<{ rows: MailboxRow[]; take(): Promise<MailboxRow[]>; detach(): void }> {
  const rows: MailboxRow[] = [];
  const detach = await bench.backend.nodes.attach(nodeId, {
    deliver: (row) => void rows.push(row),
    lost: () => Promise.resolve(),
    linksLost: () => {},
    revived: () => {},
  });
  const take = async (): Promise<MailboxRow[]> => {
    await bench.advance(0);
    return rows.splice(0);
  };
  return { rows, take, detach };
}

/** Admits and dispatches one command to the bound link. */
export async function dispatched(
  { backend }: Pick<Bench, 'backend'>,
  commandId: string,
  over: Partial<AdmitRequest> = {},
): Promise<Command> {
  await backend.commands.admit(admission(commandId, over));
  const result = await backend.commands.dispatch(keyFor(commandId), BOUND);
  if (result.kind !== 'dispatch') throw new Error(`not dispatched: ${JSON.stringify(result)}`);
  return result.command;
}

export async function read({ backend }: Bench, commandId: string): Promise<Command> {
  const [command] = await backend.commands.get([keyFor(commandId)]);
  if (!command) throw new Error(`no command ${commandId}`);
  return command;
}

export async function kinds({ backend }: Bench, commandId: string): Promise<string[]> {
  const scan = await backend.history.ofCommand('alice', commandId, { first: 100, after: null });
  return scan.rows.map(({ row }) => row.kind);
}

/** Counts the waits that match a filter. `complete`: whether all of them were counted. */
export async function countWaits(
  waiters: Pick<WaiterStore, 'countByNode'>,
  filter: WaiterFilter,
): Promise<{ readonly count: number; readonly complete: boolean }> {
  const { counts, complete } = await waiters.countByNode(filter);
  return { count: [...counts.values()].reduce((sum, count) => sum + count, 0), complete };
}

/** Reads all pages of a listing. Throws if a page has more rows than were asked for. */
export async function inPages<T>(
  first: number,
  read: (page: PageRequest) => MaybePromise<Scan<T> | null>,
): Promise<T[]> {
  const rows: T[] = [];
  let after: Position | null = null;
  do {
    const page: Scan<T> | null = await read({ first, after });
    if ((page?.rows.length ?? 0) > first) throw new Error(`a page has more than ${first} rows`);
    rows.push(...(page?.rows.map(({ row }) => row) ?? []));
    after = page?.next ?? null;
  } while (after !== null);
  return rows;
}

// Offers the acts with which most contract tests of CommandStore begin.

/** Returns functions for the first steps of most tests of commands. `bind` connects alice's client. */
export function commandActs(bench: () => Bench) {
  return {
    admit: (id: string, over: Partial<AdmitRequest> = {}) => bench().backend.commands.admit(admission(id, over)),
    bind: () => bench().backend.commands.rebind(ALICE, BOUND, 'up'),
  };
}
