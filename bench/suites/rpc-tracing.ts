/** Measures what tracing adds to the cost of a call. It runs inside this process, because it compares no peers. */
import * as sdk from '@opentelemetry/sdk-trace';
import { trace } from '@opentelemetry/api';
import { createCallboard, type CallboardOptions } from '../../src/callboard.ts';
import { rootRatioOf, samplerOf, samplingOf, type TraceSampling } from '../../src/cli/trace-export.ts';
import type { UserPrincipal } from '../../src/core/auth/principal.ts';
import type { Core } from '../../src/core/core.ts';
import { beginDispatchSpan } from '../../src/core/commands/dispatch-spans.ts';
import { LinkQueue } from '../../src/core/commands/link-queue.ts';
import type { ClientLink } from '../../src/core/commands/client-link.ts';
import type { LinkSession } from '../../src/core/commands/link-session.ts';
import type { Command } from '../../src/core/commands/command.ts';
import { trustJson } from '../../src/core/json.ts';
import { decideRoots } from '../../src/platform/tracing.ts';
import { withCallSpan } from '../../src/core/calls/call-spans.ts';
import { median } from '../lib/numbers.ts';
import type { Goal, Row, Table } from '../lib/report.ts';
import type { Run } from '../lib/rounds.ts';
import { PAYLOAD_TEXT } from '../lib/rpc.ts';

type TraceApi = NonNullable<CallboardOptions['tracing']>;

const OFF = 'tracing off';
/** The modes of tracing. `bound`: the CPU time that the mode may add to a call, in microseconds. */
const MODES: readonly { readonly name: string; readonly bound: number; readonly ratio: string }[] = [
  { name: 'tracing, sampled off', bound: 1, ratio: '0' },
  { name: 'tracing, 1 % sampled', bound: 1, ratio: '0.01' },
  { name: 'tracing, all sampled', bound: 10, ratio: '1' },
];
const OFF_BOUND = 0.2;
const TITLE = 'What tracing adds to a call inside the relay';

/** The number of calls in a chunk. The mode changes after each chunk. */
const CHUNK = 250;
/** The number of chunks of each mode in a round. */
const CHUNKS = 60;
const WARM_CHUNKS = 20;
const SEAM_CALLS = 1_000_000;

type TracingCosts = { readonly table: Table; readonly goals: readonly Goal[] };

/** Runs chunks of calls with and without tracing in turn. Returns the medians of the differences in cost. */
export async function measureTracing({ pace, quick, say, wanted }: Run): Promise<TracingCosts> {
  const added = new Map<string, number[]>([OFF, ...MODES.map(({ name }) => name)].map((name) => [name, []]));
  if (![...added.keys()].some(wanted)) return { table: tableOf([]), goals: [] };
  say('rpc: what tracing adds');
  for (let round = 0; round < pace.rounds; round++) {
    added.get(OFF)?.push(seams());
    await measureRound(added, quick ? 3 : CHUNKS);
  }
  const rows = [...added].map(([name, us]): Row => ({ name, kind: 'own', values: { cpu: median(us) }, note: '' }));
  const bounds = new Map([[OFF, OFF_BOUND], ...MODES.map(({ name, bound }): [string, number] => [name, bound])]);
  const goals = rows.map(({ name, values }): Goal => {
    return { text: `${name}, us`, measured: values?.['cpu'] ?? null, at: 'most', bound: bounds.get(name) ?? 0 };
  });
  return { table: tableOf(rows), goals };
}

function tableOf(rows: readonly Row[]): Table {
  return { title: TITLE, columns: [{ key: 'cpu', label: 'CPU us/call' }], rows, by: 'cpu' };
}

/** Measures one round on new relays, because a relay remembers calls that have ended. */
async function measureRound(added: ReadonlyMap<string, number[]>, chunks: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const plain = stack.use(await startCalls(null));
  const traced = [];
  for (const { name, ratio } of MODES) {
    const sampling = samplingOf({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: ratio });
    traced.push({ name, calls: stack.use(await startCalls(apiWith(sampling))) });
  }
  for (let chunk = -WARM_CHUNKS; chunk < chunks; chunk++)
    for (const { name, calls } of traced) {
      // The order alternates, so that neither mode gains from its position.
      const [first, second] = chunk % 2 === 0 ? [plain, calls] : [calls, plain];
      const costs = new Map([[first, await first.cost()]]);
      costs.set(second, await second.cost());
      if (chunk >= 0) added.get(name)?.push((costs.get(calls) ?? NaN) - (costs.get(plain) ?? NaN));
    }
}

/** Returns the complete SDK as `callboard serve` uses it, with an exporter that sends nothing. */
function apiWith(sampling: TraceSampling): TraceApi {
  const exporter = {
    export: (_: unknown, done: (result: { code: number }) => void) => done({ code: 0 }),
    shutdown: async () => {},
  };
  const spanProcessors = [new sdk.BatchSpanProcessor({ exporter, maxQueueSize: 100_000 })];
  const provider = new sdk.TracerProvider({ sampler: samplerOf(sdk, sampling), spanProcessors });
  return {
    getTracer: (name) =>
      decideRoots(provider.getTracer(name) as ReturnType<TraceApi['getTracer']>, rootRatioOf(sampling)),
    setSpanContext: trace.setSpanContext.bind(trace) as TraceApi['setSpanContext'],
  };
}

type Calls = AsyncDisposable & {
  /** Makes a chunk of calls, one after the other. Resolves with the CPU time per call, in microseconds. */
  cost(): Promise<number>;
};

const USER: UserPrincipal = {
  kind: 'user',
  userId: 'bench',
  scopes: new Set(['connect', 'invoke'] as const),
  expiresAt: null,
};
const ACTION = { name: 'work', summary: null, description: null, version: null, checksArguments: null, schema: null };
const RESULT = { kind: 'result', payload: trustJson(PAYLOAD_TEXT), error: null, refused: false } as const;

/** Starts a relay in this process, and a client that acknowledges and completes each command in the same turn. */
async function startCalls(tracing: TraceApi | null): Promise<Calls> {
  const callboard = createCallboard({ config: { auth: {} }, ...(tracing && { tracing }) });
  const { core } = callboard;
  await core.start();
  let session: LinkSession | null = null;
  const link: ClientLink = {
    sendCommand({ commandId }) {
      void session?.ack(commandId);
      void session?.end(commandId, RESULT);
    },
    sendCancel() {},
    backlog: () => 0,
    close() {},
  };
  session = await core.links.open(USER, helloOf(), link);
  session.begin();
  return {
    cost: async () => {
      const before = process.cpuUsage();
      for (let i = 0; i < CHUNK; i++) await call(core);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / CHUNK;
    },
    [Symbol.asyncDispose]: () => callboard.close(),
  };
}

function helloOf(): Parameters<Core['links']['open']>[1] {
  const action = { ...ACTION, metadata: null };
  return { clientId: 'tab', instanceId: 'i1', clientType: 'web', metadata: null, actions: [action] };
}

const PARAMS = trustJson(PAYLOAD_TEXT);

async function call(core: Core): Promise<void> {
  const answer = await core.rpc.invoke(USER, { userId: USER.userId, clientId: 'tab', action: 'work', params: PARAMS });
  if (answer.kind !== 'outcome') throw new Error(`the call ended as ${answer.kind}`);
}

const NO_TRACING = { tracing: null, nodeId: 'n' } as const;

/** Returns the CPU time per call of the tracing code if nothing is traced, in microseconds. */
function seams(): number {
  const request = { userId: 'bench', clientId: 'tab', action: 'work' };
  const client = { userId: 'bench', clientId: 'tab' };
  const link = {} as ClientLink;
  const linkQueue = new LinkQueue(client, { nodeId: 'n', instanceId: 'i', epoch: 1 }, link);
  const command = { callSpan: null } as Command;
  let passed = 0;
  const before = process.cpuUsage();
  for (let i = 0; i < SEAM_CALLS; i++) {
    withCallSpan(NO_TRACING, request, (span) => {
      passed += span === null ? 1 : 0;
      return null;
    });
    if (beginDispatchSpan(NO_TRACING, linkQueue, command) === null && linkQueue.spans === null) passed++;
  }
  const { user, system } = process.cpuUsage(before);
  if (passed !== 2 * SEAM_CALLS) throw new Error('something was traced');
  return (user + system) / SEAM_CALLS;
}
