/** Measures the memory of idle connections: links of clients, and event streams without events. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { startRelay, userToken } from '../lib/callboard.ts';
import { FAN_CONTENDERS, JOIN, MARKER, UPGRADE } from '../lib/fan-servers.ts';
import { connectionsWithin } from '../lib/files.ts';
import type { Sample } from '../lib/numbers.ts';
import { type Child, startChild } from '../lib/processes.ts';
import { openReader, readerCommand } from '../lib/reader.ts';
import { type Column, type Goal, type Report, type RowKind, type Table, valueOf } from '../lib/report.ts';
import { Results, type Run } from '../lib/rounds.ts';
import { measureStreams } from './fanout.ts';

/** The number of links to each server. */
const LINKS = 10_000;
/** The number of streams from each server. */
const STREAMS = 5_000;
/** The number of users to whom the links belong. */
const USERS = 100;
const OWN = 'callboard, connected clients';
const GC = ['--expose-gc'];

const COLUMNS: readonly Column[] = [
  { key: 'rss', label: 'RSS KB/link' },
  { key: 'heap', label: 'heap KB/link' },
  { key: 'cpu', label: 'CPU us to open' },
];

export async function memory(run: Run): Promise<Report> {
  const links = connectionsWithin(run.quick ? LINKS / 10 : LINKS);
  const streams = connectionsWithin(run.quick ? STREAMS / 10 : STREAMS);
  const { command } = readerCommand();
  const idle = await idleLinks(run, { links, command });
  const waiting = await measureStreams(run, { streams, contenders: FAN_CONTENDERS, phases: [], command });
  const bare = await idleRelay(run);
  const notes = [
    'A relay at rest is the built package (`npm run build`), started as `callboard serve` and asked for readiness; its memory is what the system says 5 s later, without a collection.',
    `${links} links and ${streams} streams${links < LINKS && !run.quick ? ' (as many as this system lets a process hold)' : ''}; memory after full collections, less what the server took before. Heap includes memory outside V8's.`,
  ];
  return { suite: 'memory', tables: [idle, waiting, bare], goals: goalsOf({ idle, waiting, bare }), notes };
}

type Idle = { readonly links: number; readonly command: readonly string[] };
type Contender = {
  readonly name: string;
  readonly kind: RowKind;
  /** Starts the server. `open`: opens this contender's links to it. */
  prepare(stack: AsyncDisposableStack): Promise<{ readonly child: Child; open(): Promise<unknown> }>;
};

async function idleLinks(run: Run, { links, command }: Idle): Promise<Table> {
  const results = new Results();
  const peer = (kind: RowKind, name: string, mode: string, answer = ''): Contender => ({
    name,
    kind,
    async prepare(stack) {
      const child = stack.use(await startChild('servers/idle.ts', { options: { mode }, execArgv: GC }));
      const requests = [mode === 'socket.io' ? UPGRADE : UPGRADE.replace(/\/socket.io\S*/, '/ws')];
      const at = { port: child.port, streams: links, requests, answer, marker: MARKER };
      return { child, open: async () => stack.use(await openReader(command, at)).quiet() };
    },
  });
  const contenders: readonly Contender[] = [
    peer('limit', 'raw upgrade', 'raw'),
    peer('limit', 'ws without deflate', 'ws'),
    peer('peer', 'socket.io', 'socket.io', JOIN),
    { name: OWN, kind: 'own', prepare: (stack) => ownClients(stack, links) },
  ];
  const wanted = contenders.filter(({ name }) => run.wanted(name));
  for (const { name, prepare } of wanted) {
    run.say(`memory: opening ${links} links at ${name}`);
    await using stack = new AsyncDisposableStack();
    try {
      const { child, open } = await prepare(stack);
      const [before, cpu] = [await child.memory(), await child.cpu()];
      await open();
      const used = (await child.cpu()) - cpu;
      const after = await child.memory();
      const heap = after.heap + after.external - before.heap - before.external;
      results.add(name, { rss: (after.rss - before.rss) / links / 1024, heap: heap / links / 1024, cpu: used / links });
    } catch (error) {
      results.fail(name, error);
    }
  }
  return {
    title: `${links} idle WebSocket clients`,
    columns: COLUMNS,
    rows: wanted.map((one) => results.row(one)),
    by: 'rss',
  };
}

async function ownClients(stack: AsyncDisposableStack, links: number): ReturnType<Contender['prepare']> {
  const child = stack.use(await startRelay({}, { execArgv: GC }));
  const holder = stack.use(await startChild('loads/clients.ts'));
  const tokens = await Promise.all(Array.from({ length: USERS }, (_, i) => userToken(`user-${i}`, 'connect')));
  const payload = '{"actions":[{"name":"board.show"}]}';
  const clients = Array.from({ length: links }, (_, i) => {
    return { token: tokens[i % USERS], clientId: `client-${i}`, instanceId: `instance-${i}`, payload };
  });
  return { child, open: () => holder.ask('connect', { link: child.link, clients }, z.number()) };
}

function goalsOf({ idle, waiting, bare }: Readonly<Record<'idle' | 'waiting' | 'bare', Table>>): Goal[] {
  const stream = waiting.rows.find(({ kind }) => kind === 'own')?.name ?? '';
  const most = (text: string, measured: number | null, bound: number): Goal => ({ text, measured, at: 'most', bound });
  return [
    most('idle client: RSS KB', valueOf(idle, OWN, 'rss'), 9.8),
    most('idle client: heap KB', valueOf(idle, OWN, 'heap'), 5),
    most('stream: RSS KB', valueOf(waiting, stream, 'rss'), 22),
    most('stream: heap KB', valueOf(waiting, stream, 'heap'), 6.5),
    most('relay at rest: RSS MB', valueOf(bare, AT_REST, 'rss'), 120),
    most('relay: seconds to the listening line', valueOf(bare, AT_REST, 'start'), 1),
  ];
}

// Measures an unused relay: the time until it listens, and its memory.

const AT_REST = 'callboard serve, at rest';
const PROGRAM = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
/** Without credentials the relay would run as a trial, which stores its data in a directory. */
const CREDENTIALS = { CALLBOARD_SECRET: 's'.repeat(32), CALLBOARD_ADMIN_TOKEN: 'an-admin-token-of-the-benchmark' };
/** How long the relay runs without requests before its memory is read, in milliseconds. */
const REST_MS = 5_000;
const LINE = z.object({ url: z.string() });

async function idleRelay(run: Run): Promise<Table> {
  const results = new Results();
  const row = { name: AT_REST, kind: 'own' } as const;
  const wanted = run.wanted(AT_REST);
  if (wanted) run.say('memory: a relay at rest');
  for (let round = 0; wanted && round < run.pace.rounds; round++) {
    try {
      results.add(AT_REST, await started());
    } catch (error) {
      results.fail(AT_REST, error);
    }
  }
  const columns = [
    { key: 'start', label: 's to the listening line' },
    { key: 'rss', label: 'RSS MB' },
  ];
  return { title: 'An unused relay', columns, rows: wanted ? [results.row(row)] : [], by: 'rss' };
}

async function started(): Promise<Sample> {
  if (!existsSync(PROGRAM)) throw new Error('dist/bin.js is missing: run npm run build');
  const began = performance.now();
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--json', '--port', '0', '--log-level', 'silent'], {
    env: { ...process.env, ...CREDENTIALS },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const { url } = LINE.parse(JSON.parse(await firstLine(child)));
    const start = (performance.now() - began) / 1000;
    const { ok } = await fetch(`${url}/readyz`);
    if (!ok) throw new Error('It is not ready.');
    await sleep(REST_MS);
    return { start, rss: await residentMegabytes(child.pid ?? 0) };
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout) for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error('it ended without a word');
}

/** Returns the memory of a process in megabytes, as Linux reports it. On other systems this row cannot run. */
async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return (Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024) / 1e6;
}
