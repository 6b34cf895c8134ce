/** Measures one call: from the caller over the relay to the client, and back. */
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

export async function rpc(run: Run): Promise<Report> {
  const title = `${IN_FLIGHT} calls in flight, ${PAYLOAD_TEXT.length} bytes of params`;
  const table = await measureCalls(run, { suite: 'rpc', title, contenders: RPC_CONTENDERS, columns: COLUMNS });
  const notes = [
    'Caller, relay and client are processes of their own. The relay of callboard authenticates, checks, bounds, records and retains each call; two clients take the calls in turn, since a link has at most 32 unfinished. "bare ends" speak the protocol by hand as the ends of the plain ws relays do; without it the ends are the libraries.',
    'What tracing adds is measured inside this process, with the SDK of OpenTelemetry and an exporter that sends nothing: the median of the differences between chunks of calls with and without it, which alternate. For "tracing off" it is the time of the code that a call passes through for tracing.',
  ];
  const tracing = await measureTracing(run);
  const tables = tracing.table.rows.length > 0 ? [table, tracing.table] : [table];
  return { suite: 'rpc', tables, goals: [...goalsOf(table), ...tracing.goals], notes };
}

export type MeasuredCalls = {
  readonly suite: string;
  readonly title: string;
  readonly contenders: readonly RpcContender[];
  readonly columns: readonly Column[];
};

/** Starts each path, and measures calls over the paths in turn. */
export async function measureCalls(run: Run, { suite, title, contenders, columns }: MeasuredCalls): Promise<Table> {
  await using stack = new AsyncDisposableStack();
  const results = new Results();
  const wanted = contenders.filter(({ name }) => run.wanted(name));
  const ready: { readonly name: string; readonly path: RpcPath }[] = [];
  for (const { name, prepare } of wanted) {
    run.say(`${suite}: starting ${name}`);
    try {
      ready.push({ name, path: await prepare(stack) });
    } catch (error) {
      results.fail(name, error);
    }
  }
  run.say(`${suite}: warming up`);
  const warm = new Results();
  await alternate(ready, { rounds: 1, results: warm }, ({ path }) => path.drive(run.pace.warm));
  run.say(`${suite}: timing`);
  await alternate(ready, { rounds: run.pace.rounds, results }, ({ path }) => path.drive({ ms: run.pace.timedMs }));
  return { title, columns, rows: wanted.map((one) => results.row(one)), by: 'cpu' };
}

function goalsOf(table: Table): Goal[] {
  const at = (name: string, column: string): number | null => valueOf(table, name, column);
  const cpu = (own: string, other: string): number | null => ratio(at(own, 'cpu'), at(other, 'cpu'));
  const most = (text: string, measured: number | null, bound: number): Goal => ({ text, measured, at: 'most', bound });
  return [
    most('bare ends: CPU to the plain ws relay', cpu(RPC.bare, RPC.ws), 1.3),
    most('bare ends: CPU to socket.io', cpu(RPC.bare, RPC.socketIo), 1),
    most('libraries: CPU to the plain ws relay', cpu(RPC.library, RPC.ws), 1.7),
    most('HTTP caller: CPU to the plain HTTP relay', cpu(RPC.http, RPC.wsHttp), 1.8),
    most('GraphQL mutation: CPU to the plain HTTP relay', cpu(RPC.graphql, RPC.wsHttp), 2.4),
  ];
}
