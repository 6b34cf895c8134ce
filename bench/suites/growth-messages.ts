/**
 * Measures a page of history and an ingestion as the number of retained messages of a stream grows, and a frame of
 * `siteEvents` as the number of streams grows.
 */
import { z } from 'zod';
import { askJson, type Relay, startRelay, userToken } from '../lib/callboard.ts';
import { MARKER } from '../lib/fan-event.ts';
import { connectionsWithin } from '../lib/files.ts';
import type { Sample } from '../lib/numbers.ts';
import { type Child, startChild } from '../lib/processes.ts';
import { readerCommand } from '../lib/reader.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';
import { graphqlStream, openSite } from '../lib/site.ts';
import { OPENED, PHASE_RUN } from '../loads/fan.ts';
import { type Axis, BY_PAGE, type Curve, nameOf, rowsOf } from './growth-axis.ts';
import {
  type Backing,
  graphqlRequest,
  makePlaces,
  openPlace,
  type Place,
  postRequest,
  timePlaces,
  timesIn,
} from './growth-places.ts';

/** The number of rows of the pages that are measured. */
const PAGE = 50;
const OWNER = 'owner';
const SUFFIX = 'board/log';
const EVENT = {
  client_id: 'host',
  instance_id: 'host-1',
  stream_suffix: SUFFIX,
  kind: 'event',
  payload: { name: 'board_changed', data: 'x'.repeat(64) },
} as const;

/** Settings with which a relay drops no message. */
const KEEP_EVERYTHING = { CALLBOARD_STREAM_MAX_MESSAGES: '5000000', CALLBOARD_HISTORY_MAX_BYTES: String(8 * 2 ** 30) };
const HEAP = ['--max-old-space-size=6144'];
/**
 * The number of messages that one fill request ingests. It is small enough to finish within the timeout of a request.
 */
const PART = 100_000;

const PAGE_QUERY = `query Page($stream: String!, $first: Int!, $after: String, $afterTime: DateTime) {
  messages(stream: $stream, first: $first, after: $after, afterTime: $afterTime) {
    nodes { id kind at clientId payloadBytes payload(include: true) }
    pageInfo { hasNextPage endCursor }
  }
}`;

const CURVES: readonly Curve[] = [
  { key: 'history', label: `page of ${PAGE} from the middle`, bound: BY_PAGE },
  { key: 'ingest', label: 'one event ingested', bound: BY_PAGE },
];

export async function byMessages(run: Run, backing: Backing): Promise<Axis> {
  const wanted = backing === 'redis' ? [100, 10_000, 100_000] : [100, 10_000, 100_000, 1_000_000];
  const sizes = run.quick ? wanted.slice(0, 2) : wanted;
  const results = new Results();
  run.say(`growth: retaining ${sizes.map(nameOf).join(', ')} messages (${backing})`);
  await using stack = new AsyncDisposableStack();
  const places = await makePlaces(sizes, results, (size) => fill(stack, size, backing));
  run.say('growth: asking for them');
  await timePlaces(run, places, results);
  const ofRedis = CURVES.map(({ key, label, bound }) => ({ key: `${key}.redis`, label: `${label}, Redis`, bound }));
  return {
    file: `messages-${backing}`,
    title: `More messages in one stream${backing === 'redis' ? ', over Redis' : ''}`,
    xLabel: 'messages retained before',
    yLabel: 'CPU us each',
    xKind: 'log',
    yKind: 'log',
    sizes,
    curves: backing === 'redis' ? [...CURVES, ...ofRedis] : CURVES,
    rows: rowsOf(sizes, results),
  };
}

async function fill(stack: AsyncDisposableStack, size: number, backing: Backing): Promise<Place> {
  const env =
    backing === 'redis'
      ? { CALLBOARD_STREAM_MAX_MESSAGES: KEEP_EVERYTHING.CALLBOARD_STREAM_MAX_MESSAGES }
      : KEEP_EVERYTHING;
  const { relay, redis } = await openPlace(stack, { backing, env, execArgv: HEAP });
  const token = await userToken(OWNER, 'host', 'invoke');
  const filler = stack.use(await startChild('loads/growth-fill.ts'));
  const add = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= PART) {
      const part = { port: relay.port, token, event: EVENT, count: Math.min(left, PART) };
      await filler.ask('fill', part, z.number());
    }
  };
  const before = Math.floor(size * 0.4);
  await add(before);
  const afterTime = new Date().toISOString();
  await new Promise((done) => setTimeout(done, 5));
  await add(size - before);
  const stream = `${OWNER}/${SUFFIX}`;
  const after = await cursorAfter(relay, token, { stream, first: 1, afterTime });
  const variables = { stream, first: PAGE, after, afterTime };
  return {
    name: nameOf(size),
    relay,
    redis,
    ops: [
      {
        key: 'history',
        requests: [graphqlRequest(token, { query: PAGE_QUERY, variables })],
        good: (answer) => timesIn(answer, '"name":"board_changed"') === PAGE,
      },
      {
        key: 'ingest',
        requests: [postRequest('/ingest', token, EVENT)],
        good: (answer) => answer.includes('"retained":true'),
      },
    ],
  };
}

const ANSWER = z.object({ data: z.object({ messages: z.object({ pageInfo: z.object({ endCursor: z.string() }) }) }) });

async function cursorAfter(relay: Relay, token: string, variables: object): Promise<string> {
  const body = { query: PAGE_QUERY, variables };
  const answer = ANSWER.parse(await askJson(`${relay.url}/graphql`, { token, method: 'POST', body }));
  return answer.data.messages.pageInfo.endCursor;
}

// Measures the CPU time per frame of `siteEvents` as the number of open streams grows.

/** The size of an event as it is sent: 234 bytes for the event and 6 for its chunk. */
const WIRE_BYTES = 240;
const SIZES = [10, 100, 1_000, 5_000];
/** The time of each measurement as a fraction of the usual time. */
const PACE_FACTOR = 0.5;
/**
 * The timed phases. Events that are published one at a time are written separately; ten events at once share their
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
