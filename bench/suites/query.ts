/**
 * Measures the summary of one user by GraphQL: this relay compared with bare node:http, with GraphQL servers, and with
 * its own REST route.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { ADMIN_TOKEN, askJson, startRelay, userToken, type Relay } from '../lib/callboard.ts';
import type { Sample } from '../lib/numbers.ts';
import { costOf, startChild, type Child } from '../lib/processes.ts';
import { ratio, valueOf, type Column, type Goal, type Report, type RowKind, type Table } from '../lib/report.ts';
import { alternate, Results, type Length, type Run } from '../lib/rounds.ts';
import { action, ACTIONS, ANSWER, SUMMARY, USER_NAMES, USERS, type User, type UserName } from '../lib/summary.ts';
import { HTTP_RUN } from '../loads/http.ts';

/** The number of kept-alive HTTP connections of the load. */
const CONNECTIONS = 32;

/** A contender, with the request that is sent to it. */
export type Server = {
  readonly name: string;
  readonly kind: RowKind;
  readonly child: Child;
  readonly token: string | null | Readonly<Record<UserName, string>>;
  /** The path of a GET request that is sent instead of the query. */
  readonly path?: string;
  /** The Accept header of this contender's request. Requests to other contenders have none. */
  readonly accept?: string;
};

const PEERS = [
  { name: 'node:http, prebuilt Buffer', kind: 'limit', module: 'http-limit', mode: 'buffer' },
  { name: 'node:http, hand-written object', kind: 'limit', module: 'http-limit', mode: 'object' },
  { name: 'mercurius, jit', kind: 'peer', module: 'mercurius', mode: '' },
  { name: 'graphql-yoga + jit', kind: 'peer', module: 'yoga', mode: 'jit' },
  { name: 'graphql-yoga', kind: 'peer', module: 'yoga', mode: '' },
  { name: '@apollo/server', kind: 'peer', module: 'apollo', mode: '' },
  { name: 'graphql-http', kind: 'peer', module: 'graphql-http', mode: '' },
] as const;

export const OWN = {
  fast: 'callboard',
  warm: 'callboard inside Yoga, warm',
  cold: 'callboard inside Yoga, cold',
  slow: 'callboard --no-fast-path',
  rest: 'callboard REST GET',
} as const;
/** An Accept header with which Yoga answers every request, and the fast path none. */
const BY_YOGA = 'application/json, */*;q=0.1';
const OWN_USER = "callboard, a user's token";
const OWN_ROWS = [OWN.fast, OWN_USER, OWN.warm, OWN.cold, OWN.slow, OWN.rest].map((name) => ({
  name,
  kind: 'own' as const,
}));

const COLUMNS: readonly Column[] = [
  { key: 'rate', label: 'req/s', more: true },
  { key: 'cpu', label: 'CPU us/req' },
  { key: 'system', label: 'system us' },
  { key: 'p50', label: 'p50 ms' },
  { key: 'p99', label: 'p99 ms' },
  { key: 'bytes', label: 'bytes' },
];

export async function query(run: Run): Promise<Report> {
  await using stack = new AsyncDisposableStack();
  const results = new Map(USER_NAMES.map((user) => [user, new Results()]));
  const fail = (name: string, error: unknown): void => results.forEach((each) => each.fail(name, error));
  const servers = await startAll(run, { stack, fail });
  const notes = await compare(servers, fail);
  for (const { name, child } of servers) results.forEach((each) => each.note(name, child.note));
  const load = stack.use(await startChild('loads/http.ts'));
  for (const user of USER_NAMES) {
    const of = results.get(user) ?? new Results();
    const measure = (length: Length) => (server: Server) => timed(load, server, { user, length });
    run.say(`query: warming up, ${user}`);
    await alternate(servers, { rounds: 1, results: discarding(of) }, measure(run.pace.warm));
    run.say(`query: timing, ${user}`);
    await alternate(servers, { rounds: run.pace.rounds, results: of }, measure({ ms: run.pace.timedMs }));
  }
  const rows = [...PEERS, ...OWN_ROWS].filter(({ name }) => run.wanted(name));
  const tables = USER_NAMES.map((user): Table => {
    const title = `${USERS[user]} connections x ${ACTIONS} actions, ${CONNECTIONS} connections kept alive`;
    const of = results.get(user) ?? new Results();
    return { title, columns: COLUMNS, rows: rows.map((row) => of.row(row)), by: 'cpu' };
  });
  return { suite: 'query', tables, goals: goalsOf(tables), notes };
}

/** Returns results that record the failures during the warm-up but drop its measurements. */
function discarding(results: Results): Results {
  const none = new Results();
  none.fail = (name, error) => results.fail(name, error);
  none.failed = (name) => results.failed(name);
  return none;
}

type Starting = { readonly stack: AsyncDisposableStack; readonly fail: (name: string, error: unknown) => void };

async function startAll(run: Run, { stack, fail }: Starting): Promise<Server[]> {
  run.say('query: starting the relay and its clients');
  const fast = stack.use(await startRelay());
  const cold = stack.use(await startRelay({}, { kept: false }));
  const slow = stack.use(await startRelay({ CALLBOARD_FAST_PATH: 'false' }));
  for (const relay of [fast, cold, slow]) await populate(relay, stack);
  const users = await seed(fast);
  const token = { u100: await userToken('u100', 'invoke'), u10: await userToken('u10', 'invoke') };
  const own: Server[] = [
    { name: OWN.fast, kind: 'own', child: fast, token: ADMIN_TOKEN },
    { name: OWN_USER, kind: 'own', child: fast, token },
    { name: OWN.warm, kind: 'own', child: fast, token: ADMIN_TOKEN, accept: BY_YOGA },
    { name: OWN.cold, kind: 'own', child: cold, token: ADMIN_TOKEN, accept: BY_YOGA },
    { name: OWN.slow, kind: 'own', child: slow, token: ADMIN_TOKEN },
    { name: OWN.rest, kind: 'own', child: fast, token: ADMIN_TOKEN, path: '/users/' },
  ];
  const servers: Server[] = [];
  for (const { name, kind, module, mode } of PEERS) {
    if (!run.wanted(name)) continue;
    try {
      const child = stack.use(await startChild(`servers/${module}.ts`, { options: { users, mode } }));
      servers.push({ name, kind, child, token: null });
    } catch (error) {
      fail(name, error);
    }
  }
  return [...servers, ...own.filter(({ name }) => run.wanted(name))];
}

/** Connects the clients of users, in a separate process. */
export async function populate(
  relay: Relay,
  stack: AsyncDisposableStack,
  users: readonly UserName[] = USER_NAMES,
): Promise<void> {
  const payload = JSON.stringify({ actions: Array.from({ length: ACTIONS }, (_, k) => action(k)) });
  const clients = await Promise.all(
    users.map(async (user) => {
      const token = await userToken(user, 'connect');
      return Array.from({ length: USERS[user] }, (_, i) => {
        const n = String(i).padStart(3, '0');
        return {
          token,
          clientId: `client-${n}`,
          instanceId: `inst-${(i * 7919).toString(16).padStart(12, '0')}`,
          payload,
        };
      });
    }),
  );
  const holder = stack.use(await startChild('loads/clients.ts'));
  await holder.ask('connect', { link: relay.link, clients: clients.flat() }, z.number());
}

/** Returns the relay's answers, which the peers then serve. */
export async function seed(
  relay: Relay,
  users: readonly UserName[] = USER_NAMES,
): Promise<Readonly<Record<string, User>>> {
  const of = async (id: UserName): Promise<[UserName, User]> => {
    const body = { query: SUMMARY, variables: { id } };
    const answer = await askJson(`${relay.url}/graphql`, { token: ADMIN_TOKEN, method: 'POST', body });
    return [id, ANSWER.parse(answer).data.user];
  };
  return Object.fromEntries(await Promise.all(users.map(of)));
}

/** Returns the token with which a user is queried. Users may query only their own data. */
function tokenFor(token: string | Readonly<Record<UserName, string>>, user: UserName): string {
  return typeof token === 'string' ? token : token[user];
}

function requestOf({ path, token, accept }: Server, user: UserName): string {
  const bearer = token === null ? '' : `Authorization: Bearer ${tokenFor(token, user)}\r\n`;
  if (path !== undefined) return `GET ${path}${user} HTTP/1.1\r\nHost: bench\r\n${bearer}\r\n`;
  const body = JSON.stringify({ query: SUMMARY, variables: { id: user } });
  const accepts = accept === undefined ? '' : `Accept: ${accept}\r\n`;
  const type = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  return `POST /graphql HTTP/1.1\r\nHost: bench\r\n${bearer}${accepts}${type}\r\n${body}`;
}

type Timing = { readonly user: UserName; readonly length: Length };

export async function timed(load: Child, server: Server, { user, length }: Timing): Promise<Sample> {
  const to = { port: server.child.port, requests: [requestOf(server, user)], connections: CONNECTIONS, awake: true };
  const { done, cpu, system } = await costOf(server.child, () => load.ask('run', { ...to, ...length }, HTTP_RUN));
  const { count, ms, ...rest } = done;
  return { rate: (count * 1000) / ms, cpu, system, ...rest };
}

/**
 * Sends the same requests to all contenders, and excludes contenders whose answer differs. Returns a note about them.
 */
export async function compare(
  servers: Server[],
  fail: (name: string, error: unknown) => void,
  users: readonly UserName[] = USER_NAMES,
): Promise<string[]> {
  const answers = new Map<UserName, { text: string; json: unknown }>();
  let equal = 0;
  for (const server of [...servers]) {
    for (const user of users) {
      if (server.path !== undefined) continue;
      try {
        const text = await answerTo(server, user);
        const known = answers.get(user);
        if (!known) answers.set(user, { text, json: JSON.parse(text) });
        else if (!isDeepStrictEqual(JSON.parse(text), known.json)) throw new Error('It answers something else.');
        if (known?.text === text) equal++;
      } catch (error) {
        fail(server.name, error);
        if (servers.includes(server)) servers.splice(servers.indexOf(server), 1);
      }
    }
  }
  return [`Answers compared before timing: all equal as JSON, ${equal} equal to the first of their size byte by byte.`];
}

/** Returns the text of an answer, without the parts that differ between relays and change over time. */
async function answerTo(server: Server, user: UserName): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${server.child.port}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(server.token === null ? {} : { authorization: `Bearer ${tokenFor(server.token, user)}` }),
    },
    body: JSON.stringify({ query: SUMMARY, variables: { id: user } }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`It answered ${response.status}: ${text.slice(0, 100)}`);
  return text.replace(/("nodeId"|"connectedAt"|"lastSeenAt"|"endCursor"):"[^"]*"/g, '$1:""');
}

function goalsOf([large, small]: readonly Table[]): Goal[] {
  if (!large || !small) return [];
  const [buffer, hand, mercurius, , yoga] = PEERS.map(({ name }) => name);
  const cpu = (table: Table, own: string, other = ''): number | null =>
    ratio(valueOf(table, own, 'cpu'), valueOf(table, other, 'cpu'));
  const rate = (table: Table, own: string, other = ''): number | null =>
    ratio(valueOf(table, own, 'rate'), valueOf(table, other, 'rate'));
  const most = (text: string, measured: number | null, bound: number): Goal => ({ text, measured, at: 'most', bound });
  const least = (text: string, measured: number | null, bound: number): Goal => ({
    text,
    measured,
    at: 'least',
    bound,
  });
  return [
    most('inside Yoga, cold, large: CPU to hand-written', cpu(large, OWN.cold, hand), 2),
    least('inside Yoga, cold, large: req/s to graphql-yoga', rate(large, OWN.cold, yoga), 3),
    most('inside Yoga, warm, large: CPU to hand-written', cpu(large, OWN.warm, hand), 1),
    least('inside Yoga, warm, large: req/s to graphql-yoga', rate(large, OWN.warm, yoga), 6),
    least('inside Yoga, warm, large: req/s to mercurius', rate(large, OWN.warm, mercurius), 1.5),
    most('known document, large: CPU to prebuilt Buffer', cpu(large, OWN.fast, buffer), 2.3),
    most('known document, small: CPU to prebuilt Buffer', cpu(small, OWN.fast, buffer), 2.2),
    least('known document, large: req/s to mercurius', rate(large, OWN.fast, mercurius), 2.5),
    least('known document, small: req/s to mercurius', rate(small, OWN.fast, mercurius), 1.2),
    most('REST document, large: CPU to prebuilt Buffer', cpu(large, OWN.rest, buffer), 1.9),
    most('REST document, small: CPU to prebuilt Buffer', cpu(small, OWN.rest, buffer), 1.15),
  ];
}
