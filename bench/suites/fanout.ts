/**
 * Measures the delivery of one event to many open streams: the relay's `siteEvents` compared with bare sockets, SSE
 * libraries, Socket.IO and GraphQL servers.
 */
import { FAN, FAN_CONTENDERS, MARKER, type FanContender, type FanServer } from '../lib/fan-servers.ts';
import { startChild, type Child, type Memory } from '../lib/processes.ts';
import { readerCommand } from '../lib/reader.ts';
import { ratio, valueOf, type Column, type Goal, type Report, type Table } from '../lib/report.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';
import { OPENED, PHASE_RUN } from '../loads/fan.ts';

/** The size of an event as it is sent: 234 bytes for the event and 6 for its chunk. */
const WIRE_BYTES = 240;
/** The number of streams in the full comparison. */
const STREAMS = 1000;
/** The number of streams in the comparison with fewer contenders. */
const MANY = 5000;
/**
 * The time of each phase as a fraction of the usual time. It is shorter because there are three timed phases, each of
 * which also waits until its streams are silent.
 */
const PACE_FACTOR = 0.7;

/**
 * The timed phases. `window`: the maximum number of unanswered publishes. `batch`: the number of events per publish.
 */
const PHASES = [
  { key: 'w1', label: 'one at a time', window: 1, batch: 1 },
  { key: 'w4', label: 'four in flight', window: 4, batch: 1 },
  { key: 'b10', label: 'ten at once', window: 1, batch: 10 },
] as const;
type Phase = (typeof PHASES)[number];

type Ready = { readonly name: string; readonly contender: FanContender; readonly server: FanServer };

export async function fanout(run: Run): Promise<Report> {
  const { command, native } = readerCommand();
  const whole = await measureStreams(run, { streams: STREAMS, contenders: FAN_CONTENDERS, phases: PHASES, command });
  const few = FAN_CONTENDERS.filter(({ name }) => [FAN.raw, FAN.yoga, FAN.graphql].some((wanted) => wanted === name));
  const many = run.quick
    ? null
    : await measureStreams(run, { streams: MANY, contenders: few, phases: PHASES.slice(1, 2), command });
  const reader = native
    ? 'a reader in C'
    : 'a reader in JavaScript, which may be the limit itself (no C compiler found)';
  const notes = [
    `Each stream is a connection of its own, read by ${reader}. Data is padded so that one event takes ${WIRE_BYTES} bytes on the wire everywhere. A publisher waits until 97% of what it published arrived. Events enter the relay by \`POST /ingest\` (checked, deduplicated, retained), the peers by a POST of the same form. Each viewer of the relay has a session and a token of its own.`,
  ];
  const tables = [whole, ...(many ? [many] : [])];
  return { suite: 'fanout', tables, goals: goalsOf(whole, many), notes };
}

type Measuring = {
  readonly streams: number;
  readonly contenders: readonly FanContender[];
  readonly phases: readonly Phase[];
  readonly command: readonly string[];
};

/**
 * Opens the streams at each server in turn and times the phases. Without phases, only measures the memory of the
 * streams.
 */
export async function measureStreams(run: Run, { streams, contenders, phases, command }: Measuring): Promise<Table> {
  await using stack = new AsyncDisposableStack();
  const results = new Results();
  const load = stack.use(await startChild('loads/fan.ts'));
  const wanted = contenders.filter(({ name }) => run.wanted(name));
  const ready: Ready[] = [];
  const sizes = new Map<string, Record<string, number>>();
  for (const contender of wanted) {
    run.say(`fanout: opening ${streams} streams at ${contender.name}`);
    try {
      const server = await contender.prepare(streams, stack);
      sizes.set(contender.name, await opened(load, { name: contender.name, contender, server }, { streams, command }));
      ready.push({ name: contender.name, contender, server });
    } catch (error) {
      results.fail(contender.name, error);
    }
  }
  const measure = (ms: number, phase: Phase) => (one: Ready) => timed(load, one, { ms, phase });
  for (const phase of phases) {
    run.say(`fanout: ${phase.label}, ${streams} streams`);
    const of = new Results();
    // The servers are warmed up only once, because all phases run the same code.
    if (phase === phases[0])
      await alternate(ready, { rounds: 1, results: new Results() }, measure(run.pace.warmMs, phase));
    await alternate(ready, { rounds: run.pace.rounds, results: of }, measure(run.pace.timedMs * PACE_FACTOR, phase));
    for (const { name } of ready) {
      const { values, note } = of.row({ name, kind: 'peer' });
      if (values) sizes.set(name, { ...sizes.get(name), ...values });
      else results.fail(name, note);
    }
  }
  for (const [name, values] of sizes) results.add(name, values);
  const columns = [...phases.flatMap(columnsOf), ...SIZES];
  const by = phases.length > 1 ? 'w4.cpu' : phases[0] ? `${phases[0].key}.cpu` : 'rss';
  return { title: `${streams} streams`, columns, rows: wanted.map((one) => results.row(one)), by };
}

const SIZES: readonly Column[] = [
  { key: 'rss', label: 'RSS KB/stream' },
  { key: 'heap', label: 'heap KB/stream' },
  { key: 'bytes', label: 'bytes/frame' },
];

function columnsOf({ key }: Phase): Column[] {
  return [
    { key: `${key}.rate`, label: `${key} frames/s`, more: true },
    { key: `${key}.cpu`, label: `${key} CPU us` },
  ];
}

/** Opens the streams, checks that one of them receives a published event, and measures the memory of the streams. */
async function opened(
  load: Child,
  { name, server }: Ready,
  { streams, command }: { streams: number; command: readonly string[] },
) {
  const { child, requests, answer, endpoint } = server;
  const before = await child.memory();
  const options = {
    name,
    command,
    port: child.port,
    streams,
    requests,
    answer,
    marker: MARKER,
    endpoint,
    wireBytes: WIRE_BYTES,
  };
  const { wireBytes, sample } = await load.ask('open', options, OPENED);
  if (!/"name":"site_changed"/.test(sample) || !sample.includes(`"data":"${MARKER}xxx`))
    throw new Error(`A stream heard something else: ${JSON.stringify(sample.slice(0, 120))}`);
  const after = await child.memory();
  const perStream = (of: (memory: Memory) => number): number => (of(after) - of(before)) / streams / 1024;
  const heap = perStream(({ heap, external }) => heap + external);
  return { rss: perStream(({ rss }) => rss), heap, bytes: wireBytes };
}

async function timed(load: Child, { name, server }: Ready, { ms, phase }: { ms: number; phase: Phase }) {
  const before = await server.child.cpu();
  const { key, window, batch } = phase;
  const { frames, ms: took, lost } = await load.ask('phase', { name, window, batch, ms }, PHASE_RUN);
  const cpu = (await server.child.cpu()) - before;
  return { [`${key}.rate`]: (frames * 1000) / took, [`${key}.cpu`]: cpu / frames, [`${key}.lost`]: lost };
}

function goalsOf(whole: Table, many: Table | null): Goal[] {
  const at = (name: string, column: string): number | null => valueOf(whole, name, column);
  const against = (column: string, other: string): number | null => ratio(at(FAN.graphql, column), at(other, column));
  const most = (text: string, measured: number | null, bound: number): Goal => ({ text, measured, at: 'most', bound });
  const least = (text: string, measured: number | null, bound: number): Goal => ({
    text,
    measured,
    at: 'least',
    bound,
  });
  const thousand = at(FAN.graphql, 'b10.rate');
  return [
    least('b10: frames/s to the chunk per tick', against('b10.rate', FAN.merged), 0.9),
    most('b10: CPU to the chunk per tick', against('b10.cpu', FAN.merged), 1.15),
    most('w1: CPU to the chunk per event', against('w1.cpu', FAN.raw), 1.15),
    least('w4: frames/s to graphql-yoga', against('w4.rate', FAN.yoga), 5),
    least('b10: frames/s to graphql-yoga', against('b10.rate', FAN.yoga), 40),
    least('b10: thousand frames/s', thousand === null ? null : thousand / 1000, 600),
    most('w4: CPU to better-sse', against('w4.cpu', FAN.betterSse), 0.67),
    most('w4: CPU to socket.io', against('w4.cpu', FAN.socketIo), 0.77),
    ...(many === null ? [] : manyGoals(many)),
  ];
}

function manyGoals(many: Table): Goal[] {
  const at = (name: string, column: string): number | null => valueOf(many, name, column);
  const rate = ratio(at(FAN.graphql, 'w4.rate'), at(FAN.yoga, 'w4.rate'));
  return [
    { text: `${MANY} streams, w4: frames/s to graphql-yoga`, measured: rate, at: 'least', bound: 4 },
    { text: `${MANY} streams: RSS KB each`, measured: at(FAN.graphql, 'rss'), at: 'most', bound: 20 },
    { text: `${MANY} streams: heap KB each`, measured: at(FAN.graphql, 'heap'), at: 'most', bound: 6.5 },
  ];
}
