/** Measures the CPU time for each frame of `siteEvents`, as the number of open streams grows. */
import { MARKER } from '../lib/fan-event.ts';
import { connectionsWithin } from '../lib/files.ts';
import { startRelay, type Relay } from '../lib/callboard.ts';
import type { Sample } from '../lib/numbers.ts';
import { startChild, type Child } from '../lib/processes.ts';
import { readerCommand } from '../lib/reader.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';
import { graphqlStream, openSite } from '../lib/site.ts';
import { OPENED, PHASE_RUN } from '../loads/fan.ts';
import { BY_PAGE, nameOf, rowsOf, type Axis } from './growth-axis.ts';
import { makePlaces } from './growth-places.ts';

/** The size of an event as it is sent: 234 bytes of the event and 6 of its chunk. */
const WIRE_BYTES = 240;
const SIZES = [10, 100, 1_000, 5_000];
/** The time of each measurement as a fraction of the usual time. */
const PACE_FACTOR = 0.5;
/**
 * The timed phases. Events that are published one at a time are written separately. Ten events at once share their
 * writes.
 */
const PHASES = [
  { key: 'one', label: 'one event at a time', window: 1, batch: 1 },
  { key: 'ten', label: 'ten events at once', window: 1, batch: 10 },
] as const;
type Phase = (typeof PHASES)[number];

export async function byStreams(run: Run): Promise<Axis> {
  const wanted = SIZES.map(connectionsWithin);
  const sizes = run.quick ? wanted.slice(0, 2) : wanted;
  const results = new Results();
  const { command } = readerCommand();
  run.say(`growth: opening ${sizes.map(nameOf).join(', ')} streams`);
  await using stack = new AsyncDisposableStack();
  const load = stack.use(await startChild('loads/fan.ts'));
  const places = await makePlaces(sizes, results, async (size) => {
    const relay = stack.use(await startRelay());
    await openStreams(stack, { load, relay, streams: size, command });
    return { name: nameOf(size), relay, redis: null, ops: [] };
  });
  run.say('growth: publishing to them');
  const measure = (ms: number) => (place: { readonly name: string; readonly relay: Relay }) => timed(load, place, ms);
  await alternate(places, { rounds: 1, results: new Results() }, measure(run.pace.warmMs * PACE_FACTOR));
  await alternate(places, { rounds: run.pace.rounds, results }, measure(run.pace.timedMs * PACE_FACTOR));
  return {
    file: 'subscribers',
    title: 'More subscribers of siteEvents',
    xLabel: 'open streams',
    yLabel: 'CPU us/frame',
    xKind: 'log',
    yKind: 'log',
    sizes,
    curves: PHASES.map(({ key, label }) => ({ key, label, bound: BY_PAGE })),
    rows: rowsOf(sizes, results),
  };
}

type Opening = {
  readonly load: Child;
  readonly relay: Relay;
  readonly streams: number;
  readonly command: readonly string[];
};

async function openStreams(stack: AsyncDisposableStack, { load, relay, streams, command }: Opening): Promise<void> {
  const { ownerToken, viewers } = await openSite(relay, streams, stack);
  const endpoint = { port: relay.port, path: '/ingest', token: ownerToken, form: 'ingest' };
  const options = { name: nameOf(streams), command, port: relay.port, streams, endpoint };
  const requests = viewers.map(graphqlStream);
  const { sample } = await load.ask(
    'open',
    { ...options, requests, answer: '', marker: MARKER, wireBytes: WIRE_BYTES },
    OPENED,
  );
  if (!sample.includes('"name":"site_changed"')) throw new Error(`A stream heard ${JSON.stringify(sample)}.`);
}

type Streamed = { readonly name: string; readonly relay: Relay };

async function timed(load: Child, { name, relay }: Streamed, ms: number): Promise<Sample> {
  const cost = async ({ key, window, batch }: Phase): Promise<readonly [string, number]> => {
    const before = await relay.cpu();
    const { frames } = await load.ask('phase', { name, window, batch, ms }, PHASE_RUN);
    return [key, ((await relay.cpu()) - before) / frames];
  };
  return Object.fromEntries([await cost(PHASES[0]), await cost(PHASES[1])]);
}
