/** Measures one call, from the caller over the relay to the client and back. */
import { ratio, valueOf, type Column, type Goal, type Report, type Table } from '../lib/report.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';
import { IN_FLIGHT, PAYLOAD_TEXT } from '../lib/rpc.ts';
import { measureTracing } from './rpc-tracing.ts';
import { RPC, RPC_CONTENDERS, type RpcContender, type RpcPath } from '../lib/rpc-paths.ts';

const COLUMNS: readonly Column[] = [
  { key: 'rate', label: 'calls/s', more: true },
  { key: 'p50', label: 'p50 ms' },
  { key: 'p99', label: 'p99 ms' },
  { key: 'cpu', label: 'relay CPU us/call' },
  { key: 'system', label: 'system us' },
];

/** The paths whose calls may be recorded in a data directory. They are also measured with one call in flight. */
const WITH_DATA = RPC_CONTENDERS.filter(({ name }) =>
  [RPC.bare, RPC.data100, RPC.dataAlways, RPC.dataOff].some((wanted) => wanted === name),
);

export async function rpc(run: Run): Promise<Report> {
  const title = (inFlight: number): string =>
    `${inFlight} ${inFlight === 1 ? 'call' : 'calls'} in flight, ${PAYLOAD_TEXT.length} bytes of params`;
  const measuring = { suite: 'rpc', title, columns: COLUMNS, by: 'cpu' };
  const many = await measureCalls(run, { ...measuring, contenders: RPC_CONTENDERS, levels: [IN_FLIGHT] });
  const alone = await measureCalls(run, { ...measuring, contenders: WITH_DATA, levels: [1] });
  const notes = [
    'Caller, relay and client are processes of their own. The relay of callboard authenticates, checks, bounds, records and retains each call; two clients take the calls in turn, since a link has at most 32 unfinished. "bare ends" speak the protocol by hand as the ends of the plain ws relays do; without it the ends are the libraries. "with data" also records each call in a data directory, which is synced every 100 ms, before each answer ("always") or by the system ("off").',
    'What tracing adds is measured inside this process, with the SDK of OpenTelemetry and an exporter that sends nothing: the median of the differences between chunks of calls with and without it, which alternate. For "tracing off" it is the time of the code that a call passes through for tracing.',
  ];
  const tracing = await measureTracing(run);
  const tables = [...many, ...alone, tracing.table].filter(({ rows }) => rows.length > 0);
  return { suite: 'rpc', tables, goals: [...many.flatMap(goalsOf), ...tracing.goals], notes };
}

type MeasuredCalls = {
  readonly suite: string;
  /** Returns the title of the table for a number of calls in flight. */
  readonly title: (inFlight: number) => string;
  readonly contenders: readonly RpcContender[];
  readonly columns: readonly Column[];
  readonly by: string;
  /** The numbers of calls in flight that are measured. */
  readonly levels: readonly number[];
};

/** Starts the paths and measures them in turn. Returns a table for each number of calls in flight. */
export async function measureCalls(run: Run, measuring: MeasuredCalls): Promise<readonly Table[]> {
  const { suite, title, contenders, columns, by, levels } = measuring;
  await using stack = new AsyncDisposableStack();
  const wanted = contenders.filter(({ name }) => run.wanted(name));
  const failures: { readonly name: string; readonly error: unknown }[] = [];
  const ready: { readonly name: string; readonly path: RpcPath }[] = [];
  for (const { name, prepare } of wanted) {
    run.say(`${suite}: starting ${name}`);
    try {
      ready.push({ name, path: await prepare(stack) });
    } catch (error) {
      failures.push({ name, error });
    }
  }
  run.say(`${suite}: warming up`);
  const warm = { inFlight: Math.max(IN_FLIGHT, ...levels), ...run.pace.warm };
  await alternate(ready, { rounds: 1, results: new Results() }, ({ path }) => path.drive(warm));
  const tables: Table[] = [];
  for (const inFlight of levels) {
    run.say(`${suite}: timing, ${inFlight} in flight`);
    const results = new Results();
    for (const { name, error } of failures) results.fail(name, error);
    const { rounds, timedMs } = run.pace;
    await alternate(ready, { rounds, results }, ({ path }) => path.drive({ inFlight, ms: timedMs }));
    tables.push({ title: title(inFlight), columns, rows: wanted.map((one) => results.row(one)), by });
  }
  return tables;
}

/**
 * What a data directory that is synced every 100 ms may add to a call: some microseconds or a part of the call,
 * whichever is more.
 */
const DATA_BOUND = { us: 9, part: 0.35 };

function goalsOf(table: Table): Goal[] {
  const at = (name: string, column: string): number | null => valueOf(table, name, column);
  const cpu = (own: string, other: string): number | null => ratio(at(own, 'cpu'), at(other, 'cpu'));
  const most = (text: string, measured: number | null, bound: number): Goal => ({ text, measured, at: 'most', bound });
  const [inMemory, recorded] = [at(RPC.bare, 'cpu'), at(RPC.data100, 'cpu')];
  const added = inMemory === null || recorded === null ? null : recorded - inMemory;
  const bound = Math.max(DATA_BOUND.us, DATA_BOUND.part * (inMemory ?? 0));
  return [
    most('bare ends: CPU to the plain ws relay', cpu(RPC.bare, RPC.ws), 1.3),
    most('bare ends: CPU to socket.io', cpu(RPC.bare, RPC.socketIo), 1),
    most('libraries: CPU to the plain ws relay', cpu(RPC.library, RPC.ws), 1.7),
    most('HTTP caller: CPU to the plain HTTP relay', cpu(RPC.http, RPC.wsHttp), 1.8),
    most('GraphQL mutation: CPU to the plain HTTP relay', cpu(RPC.graphql, RPC.wsHttp), 2.4),
    most('with data, 100 ms: CPU us more than in memory', added, Number(bound.toFixed(1))),
  ];
}
