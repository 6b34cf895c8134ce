/** Fills a backend's data directory with calls that end, writes its snapshot, or starts a backend on it again. */
import { z } from 'zod';
import { openData, type OpenData } from '../../src/backends/journal/open.ts';
import type { Binding } from '../../src/core/commands/command-store.ts';
import { toJson } from '../../src/core/json.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto, systemClock, systemLoop } from '../../src/platform/system.ts';
import type { Started } from '../lib/child.ts';

/** `historyBytes`: the limit of history, if it is not the default. */
const OPTIONS = z.object({ root: z.string(), historyBytes: z.number().optional() });
/** `events`: the number of events that are retained for each call. */
const FILL = z.object({ calls: z.number(), events: z.number() });
const USERS = 100;
/** The number of calls that are made in one turn of the event loop. */
const TOGETHER = 50;
const PAYLOAD_CHARS = 180;
/** The limit on the rows of a stream, if history has more room than the default. */
const ROWS_OF_A_STREAM = 1_000_000;

export type Snapshot = { readonly cpu: number; readonly longestMs: number; readonly bytes: number };

export async function start(given: unknown): Promise<Started> {
  const { root, historyBytes } = OPTIONS.parse(given);
  let longestMs = 0;
  const log: Log = {
    ...silentLog,
    debug: (members) => void (longestMs = Number('longestMs' in members ? members['longestMs'] : longestMs)),
  };
  const before = cpuMicros();
  const data = await openData({
    ...{ root, sync: 'off', version: 'bench', loop: systemLoop, random: createCrypto('bench'), journalCost: Infinity },
    onFailure(error) {
      throw error;
    },
    memory: {
      ...{ clock: systemClock, log, sha256: createCrypto('bench').sha256 },
      ...(historyBytes === undefined
        ? { shares: createShares() }
        : {
            shares: createShares({ history_bytes: { guarantee: historyBytes, total: historyBytes } }),
            history: { bytes: historyBytes, streamMessages: ROWS_OF_A_STREAM },
          }),
    },
  });
  const startCpu = cpuMicros() - before;
  return {
    acts: {
      started: () => startCpu,
      fill: (options) => fill(data, FILL.parse(options)),
      /** Writes a snapshot and ends without closing, so that the next start finds the data as after a kill. */
      async snapshot() {
        const from = cpuMicros();
        await data.backend.snapshot();
        const bytes = data.backend.durability().bytes ?? 0;
        return { cpu: cpuMicros() - from, longestMs, bytes } satisfies Snapshot;
      },
    },
  };
}

function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Makes the calls, and returns the bytes that the journal needed for one call. */
async function fill({ backend }: OpenData, { calls, events }: z.infer<typeof FILL>): Promise<number> {
  const bindings: Binding[] = [];
  const before = backend.durability().bytes ?? 0;
  for (let number = 0; number < USERS; number++) bindings.push(await connect(backend, number));
  for (let number = 0; number < calls; number += TOGETHER) {
    for (let one = number; one < number + TOGETHER; one++) await call(backend, { number: one, events, bindings });
    await new Promise((done) => setImmediate(done));
  }
  return ((backend.durability().bytes ?? 0) - before) / calls;
}

async function connect({ connections, commands }: OpenData['backend'], number: number): Promise<Binding> {
  const client = { userId: `user-${number}`, clientId: 'tab' };
  const seen = { instanceId: `instance-${number}`, nodeId: 'bench', clientType: 'browser', host: false } as const;
  const { connection } = await connections.connect({ ...client, ...seen, metadata: null, actions: [] });
  const binding = { nodeId: 'bench', instanceId: seen.instanceId, epoch: connection.epoch };
  await commands.rebind(client, binding, 'up');
  return binding;
}

type Call = { readonly number: number; readonly events: number; readonly bindings: readonly Binding[] };

/** Makes one call, from its admission to its end. Each payload is a separate text, so that no memory is shared. */
async function call({ commands, history }: OpenData['backend'], { number, events, bindings }: Call): Promise<void> {
  const at = number % USERS;
  const binding = bindings[at];
  if (!binding) return;
  const key = { userId: `user-${at}`, clientId: 'tab', commandId: commandIdOf(number) };
  const [params, result] = ['params', 'result'].map((name) => toJson({ [name]: textOf(number) }));
  if (params === undefined || result === undefined) return;
  await commands.admit({
    ...{ ...key, chosenId: false, action: 'notes.add', digest: '', scopeId: key.userId, scopeLimit: 1_000 },
    ...{ memberLimit: null, namedInstanceId: null, clientType: 'browser', caller: CALLER, callSpan: null },
    ...{ traceId: null, parentSpanId: null, traceFlags: null, traceState: null },
    ...{ params, kept: { payload: params, spill: null }, connectWithinMs: 10_000, respondWithinMs: 20_000 },
    waiter: { rpcId: key.commandId, caller: CALLER, callerNodeId: 'bench', waitFor: 'completed', withinMs: null },
  });
  await commands.dispatch(key, binding);
  const { instanceId } = binding;
  for (let event = 0; event < events; event++) {
    const ids = { id: `${key.commandId}:${event}`, suffix: 'events', kind: 'event', commandId: null } as const;
    const traced = { traceId: null, parentSpanId: null, error: null, spill: null };
    await history.retain({ ...key, ...ids, ...traced, instanceId, payload: toJson({ event }) ?? null });
  }
  const kept = { payload: result, spill: null };
  await commands.finish(key, { instanceId, kind: 'result', payload: result, kept, error: null, refused: false });
}

const CALLER = { kind: 'user', name: 'bench' } as const;

/** Returns an id in the form that the relay creates. */
function commandIdOf(number: number): string {
  return `${Date.now()
    .toString(16)
    .padStart(12, '0')
    .replace(/^(.{8})/, '$1-')}-7000-8000-${number.toString(16).padStart(12, '0')}`;
}

function textOf(number: number): string {
  return String(number).padEnd(PAYLOAD_CHARS, 'x');
}
