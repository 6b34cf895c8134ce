/** Measures how long the users of a relay wait whose process was killed, until another one owns them. */
import { z } from 'zod';
import { ADMIN_TOKEN, askJson, startRelay, userToken, type Relay } from '../lib/callboard.ts';
import { median, type Sample } from '../lib/numbers.ts';
import { partitionsAtRest, usersOwnedBy } from '../lib/owners.ts';
import { startChild } from '../lib/processes.ts';
import { openRedis } from '../lib/redis.ts';
import { type Goal, type Report, type Table, valueOf } from '../lib/report.ts';
import { Results, type Run } from '../lib/rounds.ts';
import { CALLS, IN_FLIGHT } from '../lib/rpc.ts';

/** How many calls the dead owner has recorded, of users in partitions of their own. */
const FILLINGS = [
  { name: 'no command', calls: 0 },
  { name: '10,000 commands', calls: 10_000 },
  { name: '100,000 commands', calls: 100_000 },
] as const;
const USERS = 16;
/** The default lease of a relay, in seconds. */
const LEASE_S = 2.5;

const COLUMNS = [
  { key: 'median', label: 'median silence s' },
  { key: 'longest', label: 'longest silence s' },
  { key: 'turn', label: 'longest turn of the next owner ms' },
  { key: 'heap', label: 'heap of the next owner MB' },
  { key: 'log', label: 'Redis MB' },
] as const;

export async function takeover(run: Run): Promise<Report> {
  const results = new Results();
  const fillings = FILLINGS.filter(({ name }) => run.wanted(name));
  for (let round = 0; round < run.pace.rounds; round++) {
    for (const { name, calls } of fillings) {
      run.say(`takeover: round ${round + 1}, ${name}`);
      try {
        results.add(name, await measured(run.quick ? calls / 20 : calls));
      } catch (error) {
        results.fail(name, error);
      }
    }
  }
  const rows = fillings.map(({ name }) => results.row({ name, kind: 'own' }));
  const table: Table = { title: 'The owner is killed', columns: COLUMNS, rows, by: 'median' };
  const notes = [
    `Two relays own partitions, with the default lease of ${LEASE_S} s. ${USERS} users of one relay, in partitions of their own, have made calls with params and a result of 200 bytes. Then its process is killed, and each user's connections are asked for at the other relay at once. Silence is the time until the answer.`,
  ];
  return { suite: 'takeover', tables: [table], goals: goalsOf(table), notes };
}

async function measured(calls: number): Promise<Sample> {
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
  const began = performance.now();
  process.kill(owner.pid, 'SIGKILL');
  const silences = await Promise.all(
    users.map(async (user) => {
      await askJson(`${other.url}/connections?user_id=${user}`, { token: ADMIN_TOKEN });
      return (performance.now() - began) / 1000;
    }),
  );
  const turn = await other.ask('turns', null, z.number());
  const { heap } = await other.memory();
  const longest = Math.max(...silences);
  return { median: median(silences), longest, turn, heap: heap / 1e6, log: data / 1e6 };
}

async function fill(relay: Relay, user: string, count: number): Promise<void> {
  const end = { kind: 'bare', port: relay.port, token: await userToken(user, 'connect', 'invoke') };
  await using _client = await startChild('loads/rpc-client.ts', { options: end });
  await using caller = await startChild('loads/rpc-caller.ts', { options: end });
  await caller.ask('drive', { inFlight: IN_FLIGHT, ms: 60_000, count }, CALLS);
}

function goalsOf(table: Table): Goal[] {
  const most = (text: string, row: string, column: string, bound: number): Goal => ({
    ...{ text, measured: valueOf(table, row, column), at: 'most', bound },
  });
  return [
    most('median silence s, no command', FILLINGS[0].name, 'median', 1.5 * LEASE_S),
    most('longest silence s, 100,000 commands', FILLINGS[2].name, 'longest', 1.5 * LEASE_S + 10),
    most('longest turn of the next owner ms, 100,000 commands', FILLINGS[2].name, 'turn', 100),
  ];
}
