/**
 * Measures the cost of each part of a known query of 4.5 KB, by removing the parts one after the other from a copy of
 * the sources. A profile would be less accurate: a part that is called from many places, or that creates garbage, costs
 * more than its samples show.
 */
import { copySources, plantMutant, type Plant } from '../../faults/outages/mutants/plant.ts';
import { ADMIN_TOKEN, startRelay } from '../lib/callboard.ts';
import { startChild } from '../lib/processes.ts';
import { valueOf, type Column, type Goal, type Report, type Row, type Table } from '../lib/report.ts';
import { alternate, Results, type Length, type Run } from '../lib/rounds.ts';
import { compare, populate, seed, timed, type Server } from './query.ts';

const USERS = ['u10'] as const;
const WHOLE = 'callboard';
const BUFFER = 'node:http, prebuilt Buffer';

type Edits = readonly Pick<Plant, 'file' | 'find' | 'replace'>[];
type Part = { readonly name: string; readonly edits: Edits };

const EXECUTOR = 'graphql/execute/executor.ts';
const HANDLER = 'http/request-handler.ts';
const ACCESS_LOG = 'http/access-log.ts';
const REPLY = 'web/reply.ts';

/** Returns an edit that removes a text from a file. */
const without = (file: string, find: string) => ({ file, find, replace: '' });

/**
 * The parts in the order of their removal, the innermost first. Each part is removed from sources that lack the parts
 * before it. The replacement of a part is correct only if the same request is sent again and again.
 */
export const PARTS: readonly Part[] = [
  {
    name: 'the query: turn, context, resolvers, stores, text',
    edits: [
      {
        file: EXECUTOR,
        find: 'const answer = run(operation, admitted, (context) => answerOf(admitted.bound, context, inserts));',
        replace: `const kept = KEPT.get(admitted.bound);
        if (kept) return kept;
        const answer = run(operation, admitted, (context) => answerOf(admitted.bound, context, inserts));
        if (!(answer instanceof Promise)) KEPT.set(admitted.bound, answer);`,
      },
      { file: EXECUTOR, find: 'type Admitted = {', replace: 'const KEPT = new WeakMap();\ntype Admitted = {' },
    ],
  },
  {
    name: 'document, plan, variables, limits',
    edits: [
      {
        file: 'graphql/http/handler.ts',
        find: 'req.url === GRAPHQL_PATH && type ? lookup(req, exchange) : null;',
        replace: 'req.url === GRAPHQL_PATH && type ? (KEPT ??= lookup(req, exchange)) : null;',
      },
      {
        file: 'graphql/http/handler.ts',
        find: 'function createFastPath(',
        replace: 'let KEPT;\nfunction createFastPath(',
      },
      {
        file: EXECUTOR,
        find: 'const admitted = admit(operation);\n        const kept =',
        replace: 'const admitted = (ADMITTED ??= admit(operation));\n        const kept =',
      },
      { file: EXECUTOR, find: 'const KEPT = new WeakMap();', replace: 'const KEPT = new WeakMap();\nlet ADMITTED;' },
    ],
  },
  {
    name: 'access log and its line',
    edits: [
      {
        file: ACCESS_LOG,
        find: 'const status = response.headersSent ? response.statusCode : null;',
        replace: 'return;',
      },
    ],
  },
  {
    name: 'token: SHA-256, look-up',
    edits: [
      {
        file: 'http/authenticate-request.ts',
        find: 'const found = thenDo(authenticator.recall(token)',
        replace: 'const found = KEPT.get(token) ?? thenDo(authenticator.recall(token)',
      },
      {
        file: 'http/authenticate-request.ts',
        find: 'if (requester) sockets.authenticated(request.socket, requester);',
        replace: 'KEPT.set(token, requester);\n      sockets.authenticated(request.socket, requester);',
      },
      {
        file: 'http/authenticate-request.ts',
        find: 'export function bearerOf(',
        replace: 'const KEPT = new Map();\nexport function bearerOf(',
      },
    ],
  },
  {
    name: 'body: collected and recognised',
    edits: [
      {
        file: HANDLER,
        find: 'return readBody(request, requester ? maxBodyBytes : anonymous.bodyBytes, { use, unannounced });',
        replace: `if (KEPT !== undefined) return (request.resume(), answer(KEPT));
    const keep = (bytes) => answer((KEPT = bytes && parse(bytes)));
    return readBody(request, maxBodyBytes, { use: keep, unannounced });`,
      },
      { file: HANDLER, find: 'function createApiRouter(', replace: 'let KEPT;\nfunction createApiRouter(' },
    ],
  },
  {
    name: 'five headers of every response',
    edits: [
      {
        file: REPLY,
        find: "const head = opened ? [] : ['x-request-id', requestId, ...HEAD];",
        replace: 'const head = [];',
      },
    ],
  },
  {
    name: 'shares: requests, sockets, unread bytes',
    edits: [
      without(HANDLER, 'sockets.began(socket);'),
      without(HANDLER, 'sockets.ended(socket);'),
      without(HANDLER, 'requestDone(response);'),
      without(HANDLER, 'unread.serves(socket, access);'),
      without(HANDLER, 'options.unread.requireRoom(requester);'),
      without(HANDLER, 'if (requester) requestBegan(info.response, options.core.shares.of(holderOf(requester)));'),
      without(REPLY, 'if (reply.refuses(known)) return;'),
      without(REPLY, 'unread.wrote(socket, known);'),
    ],
  },
  {
    name: 'request id, counters, duration',
    edits: [
      { file: HANDLER, find: 'id: options.randomId(),', replace: "id: ''," },
      { file: HANDLER, find: "void => meter.count('requests', label);", replace: 'void => {};' },
      without(ACCESS_LOG, "if (access.route !== null) metrics.observe('http_seconds', ms, access.route);"),
    ],
  },
  {
    name: 'host, origin, routes',
    edits: [
      without(HANDLER, 'requireHost(info);'),
      {
        file: HANDLER,
        find: 'const route = path === null ? undefined : routeOf(path);',
        replace: 'const route = undefined;',
      },
      without(HANDLER, "if (crossOrigin(info, origins)) return 'preflight';"),
      without(HANDLER, 'if (!isPage) requireOwnPage(info, options);'),
    ],
  },
];

/**
 * Returns a copy of the sources without these parts. Throws unless the text of each edit occurs exactly once in its
 * file, as the edits before it left the file.
 */
export function sourcesWithout(parts: readonly Part[]) {
  const [first, ...also] = parts.flatMap(({ edits }) => edits);
  return first ? plantMutant({ ...first, also }) : copySources();
}

const nameOf = ({ name }: Part, index: number): string => `${index === 0 ? 'without' : 'and without'} ${name}`;

const COLUMNS: readonly Column[] = [
  { key: 'cpu', label: 'CPU us/req' },
  { key: 'part', label: 'less than before' },
  { key: 'rate', label: 'req/s', more: true },
];

export async function parts(run: Run): Promise<Report> {
  await using stack = new AsyncDisposableStack();
  const results = new Results();
  const fail = (name: string, error: unknown): void => results.fail(name, error);
  const servers = await startAll(run, stack, fail);
  const notes = await compare(servers, fail, USERS);
  const load = stack.use(await startChild('loads/http.ts'));
  const measure = (length: Length) => (server: Server) => timed(load, server, { user: USERS[0], length });
  run.say('parts: warming up');
  await alternate(servers, { rounds: 1, results: new Results() }, measure(run.pace.warm));
  run.say('parts: timing');
  // The cost of a part is the difference of two rows, which needs more rounds than a ratio.
  await alternate(servers, { rounds: run.pace.rounds * 3, results }, measure({ ms: run.pace.timedMs }));
  const names = [WHOLE, ...PARTS.map(nameOf)];
  const own = names.map((name) => results.row({ name, kind: 'own' }));
  const rows = [
    ...own.map((row, index) => withPart(row, own[index - 1])),
    results.row({ name: BUFFER, kind: 'limit' }),
  ];
  const table: Table = { title: 'A known query of 4.5 KB', columns: COLUMNS, rows, by: 'cpu' };
  return {
    ...{ suite: 'parts', tables: [table], goals: goalsOf(table) },
    notes: [
      ...notes,
      'The relay, and relays without some of their parts: each row lacks one part more than the row before it. Nothing else is changed, so what remains of the last row is Node, its answer, the listeners and promises of the request, and the way through the functions. A difference below 1 us is noise.',
    ],
  };
}

/** Returns the row with the cost of its part, which is the difference to the row before. */
function withPart(row: Row, before: Row | undefined): Row {
  const [cpu, more] = [row.values?.['cpu'], before?.values?.['cpu']];
  return row.values && cpu !== undefined && more !== undefined
    ? { ...row, values: { ...row.values, part: more - cpu } }
    : row;
}

async function startAll(
  run: Run,
  stack: AsyncDisposableStack,
  fail: (name: string, error: unknown) => void,
): Promise<Server[]> {
  const servers: Server[] = [];
  const start = async (name: string, source?: string): Promise<void> => {
    run.say(`parts: starting ${name}`);
    const child = stack.use(await startRelay({}, source === undefined ? {} : { source }));
    await populate(child, stack, USERS);
    servers.push({ name, kind: 'own', child, token: ADMIN_TOKEN });
    if (source !== undefined) return;
    const options = { users: await seed(child, USERS), mode: 'buffer' };
    const limit = stack.use(await startChild('servers/http-limit.ts', { options }));
    servers.push({ name: BUFFER, kind: 'limit', child: limit, token: null });
  };
  await start(WHOLE);
  for (const [index, part] of PARTS.entries()) {
    try {
      await start(nameOf(part, index), stack.use(sourcesWithout(PARTS.slice(0, index + 1))).source);
    } catch (error) {
      fail(nameOf(part, index), error);
    }
  }
  return servers;
}

/** The maximum CPU time of a request besides the query and the prebuilt answer, in microseconds. */
const FIXED_US = 10;

function goalsOf(table: Table): Goal[] {
  const [query] = PARTS.map(nameOf);
  const [cpu, limit] = [valueOf(table, query ?? '', 'cpu'), valueOf(table, BUFFER, 'cpu')];
  const measured = cpu === null || limit === null ? null : cpu - limit;
  return [{ text: 'beyond the query and node:http, us', measured, at: 'most', bound: FIXED_US }];
}
