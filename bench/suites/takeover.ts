/** Measures how long users wait until another relay owns them, after their relay was killed or stopped in order. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { ADMIN_TOKEN, askJson, startRelay, userToken, type Relay } from '../lib/callboard.ts';
import { median, type Sample } from '../lib/numbers.ts';
import { partitionsAtRest, usersOwnedBy } from '../lib/owners.ts';
import { startChild } from '../lib/processes.ts';
import { openRedis } from '../lib/redis.ts';
import { type Goal, type Report, type Table, valueOf } from '../lib/report.ts';
import { Results, type Run } from '../lib/rounds.ts';
import { CALLS, IN_FLIGHT } from '../lib/rpc.ts';

/** The number of calls that the owner has recorded, for users in different partitions. */
const FILLINGS = [
  { name: 'no command', calls: 0 },
  { name: '10,000 commands', calls: 10_000 },
  { name: '100,000 commands', calls: 100_000 },
] as const;
const USERS = 16;
/** The default duration of a relay's lease, in seconds. */
const LEASE_S = 2.5;

/** The delay before a user is requested again while the owner stops, in milliseconds. */
const ASK_MS = 5;
/** The goal for the median wait of users while partitions are handed over, in milliseconds. */
const HANDOVER_MS = 200;

const COLUMNS = [
  { key: 'median', label: 'median silence s' },
  { key: 'longest', label: 'longest silence s' },
  { key: 'turn', label: 'longest turn of the next owner ms' },
  { key: 'heap', label: 'heap of the next owner MB' },
  { key: 'log', label: 'Redis MB' },
] as const;
const HANDOVER_COLUMNS = [
  { key: 'median', label: 'median silence ms' },
  { key: 'longest', label: 'longest silence ms' },
  { key: 'turn', label: 'longest turn of the next owner ms' },
  { key: 'stop', label: 'until the owner has stopped s' },
] as const;

export async function takeover(run: Run): Promise<Report> {
  const fillings = FILLINGS.filter(({ name }) => run.wanted(name));
  const killed = new Results();
  const handed = new Results();
  for (let round = 0; round < run.pace.rounds; round++) {
    for (const { name, calls } of fillings) {
      run.say(`takeover: round ${round + 1}, ${name}`);
      const count = run.quick ? calls / 20 : calls;
      await noted(killed, name, () => measured(count, whenKilled));
      await noted(handed, name, () => measured(count, whenHandedOver));
    }
  }
  const rows = (results: Results) => fillings.map(({ name }) => results.row({ name, kind: 'own' }));
  const tables: [Table, Table] = [
    { title: 'The owner is killed', columns: COLUMNS, rows: rows(killed), by: 'median' },
    { title: 'The owner stops in order', columns: HANDOVER_COLUMNS, rows: rows(handed), by: 'median' },
  ];
  const notes = [
    `Two relays own partitions, with the default lease of ${LEASE_S} s. ${USERS} users of one relay, in partitions of their own, have made calls with params and a result of 200 bytes. Then its process is killed, and each user's connections are asked for at the other relay at once. Silence is the time until the answer.`,
    `Or it stops in order and hands its partitions over, while each user's connections are asked for at the other relay again and again, ${ASK_MS} ms after each answer. Silence is the longest time until an answer.`,
  ];
  return { suite: 'takeover', tables, goals: goalsOf(...tables), notes };
}

async function noted(results: Results, name: string, work: () => Promise<Sample>): Promise<void> {
  try {
    results.add(name, await work());
  } catch (error) {
    results.fail(name, error);
  }
}

/** Two relays, and users whose partitions the first one owns. */
type Place = { readonly owner: Relay; readonly other: Relay; readonly users: readonly string[] };

/** Fills the logs of the users, and returns the measurements of `end`, which ends the owner. */
async function measured(calls: number, end: (place: Place) => Promise<Sample>): Promise<Sample> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await openRedis());
  const ids = ['relay-0', 'relay-1'];
  const env = { CALLBOARD_REDIS_URL: redis.url, CALLBOARD_DURABILITY: 'aof_everysec', CALLBOARD_STORE: 'owned' };
  const options = { execArgv: ['--expose-gc'] };
  const [owner, other] = await Promise.all(
    ids.map(async (id) => stack.use(await startRelay({ ...env, CALLBOARD_NODE_ID: id }, options))),
  );
  if (!owner || !other) throw new Error('a relay is missing');
  const users = usersOwnedBy(await partitionsAtRest(redis.url, ids.length), 'relay-0', USERS);
  for (const user of calls > 0 ? users : []) await fill(owner, user, calls / users.length);
  const { data } = await redis.usage();
  await other.ask('turns', null, z.unknown());
  const ended = await end({ owner, other, users });
  const turn = await other.ask('turns', null, z.number());
  const { heap } = await other.memory();
  return { ...ended, turn, heap: heap / 1e6, log: data / 1e6 };
}

async function whenKilled({ owner, other, users }: Place): Promise<Sample> {
  process.kill(owner.pid, 'SIGKILL');
  const silences = await Promise.all(users.map((user) => msUntilAnswer(other, user)));
  return { median: median(silences) / 1000, longest: Math.max(...silences) / 1000 };
}

async function whenHandedOver({ owner, other, users }: Place): Promise<Sample> {
  const stopping = { isOver: false };
  const asking = users.map(async (user) => {
    let longest = 0;
    while (!stopping.isOver) {
      longest = Math.max(longest, await msUntilAnswer(other, user));
      await sleep(ASK_MS);
    }
    return longest;
  });
  const began = performance.now();
  await owner.ask('close', null, z.null());
  const stop = (performance.now() - began) / 1000;
  stopping.isOver = true;
  const silences = await Promise.all(asking);
  return { median: median(silences), longest: Math.max(...silences), stop };
}

async function msUntilAnswer(relay: Relay, user: string): Promise<number> {
  const began = performance.now();
  await askJson(`${relay.url}/connections?user_id=${user}`, { token: ADMIN_TOKEN });
  return performance.now() - began;
}

async function fill(relay: Relay, user: string, count: number): Promise<void> {
  const end = { kind: 'bare', port: relay.port, token: await userToken(user, 'connect', 'invoke') };
  await using _client = await startChild('loads/rpc-client.ts', { options: end });
  await using caller = await startChild('loads/rpc-caller.ts', { options: end });
  await caller.ask('drive', { inFlight: IN_FLIGHT, ms: 60_000, count }, CALLS);
}

function goalsOf(killed: Table, handed: Table): Goal[] {
  const most = (text: string, table: Table, row: string, column: string, bound: number): Goal => ({
    text,
    measured: valueOf(table, row, column),
    at: 'most',
    bound,
  });
  return [
    most('median silence s, no command', killed, FILLINGS[0].name, 'median', 1.5 * LEASE_S),
    most('longest silence s, 100,000 commands', killed, FILLINGS[2].name, 'longest', 1.5 * LEASE_S + 10),
    most('longest turn of the next owner ms, 100,000 commands', killed, FILLINGS[2].name, 'turn', 100),
    ...FILLINGS.map(({ name }) => most(`handed over, median silence ms, ${name}`, handed, name, 'median', HANDOVER_MS)),
  ];
}
