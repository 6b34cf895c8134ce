/** Measures a page of history and one ingestion, as the number of retained messages of a stream grows. */
import { z } from 'zod';
import { askJson, userToken, type Relay } from '../lib/callboard.ts';
import { startChild } from '../lib/processes.ts';
import { Results, type Run } from '../lib/rounds.ts';
import { BY_PAGE, nameOf, rowsOf, type Axis, type Curve } from './growth-axis.ts';
import {
  graphqlRequest,
  makePlaces,
  openPlace,
  postRequest,
  timePlaces,
  timesIn,
  type Backing,
  type Place,
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

/** The settings of a relay that drops no message. */
const KEEP_EVERYTHING = { CALLBOARD_STREAM_MAX_MESSAGES: '5000000', CALLBOARD_HISTORY_MAX_BYTES: String(8 * 2 ** 30) };
const HEAP = ['--max-old-space-size=6144'];
/** The number of messages that one fill request ingests: few enough to finish within the time of a request. */
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
