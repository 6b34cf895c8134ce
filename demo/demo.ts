/**
 * Runs the demo: a relay, its clients, their traffic, a web page in a browser, and the task board. Prints a greeting
 * and the status.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { openCallboard, type Callboard } from '../src/callboard.ts';
import { createAdmin } from '../src/clients/admin/index.ts';
import { secretsIn } from '../src/config/auth-config.ts';
import type { Config } from '../src/config.ts';
import type { Log } from '../src/core/ports.ts';
import { createSignIn } from '../src/http/sign-in.ts';
import { signToken } from '../src/http/tokens.ts';
import { createLog } from '../src/platform/log.ts';
import { HOST, startBoard, type Board, type BoardPage } from './board.ts';
import { startPageServer, type PageServer } from './pages.ts';
import { CAST, PAGE, type CastMember } from './cast.ts';
import { Keeper, type SupervisedRun } from './keeper.ts';
import { endWithin, startPart } from './part-process.ts';
import { pauseAt, roughly } from './pause.ts';
import { connectUrl, type Relay } from './relay.ts';
import { startTraffic } from './traffic.ts';

export type DemoOptions = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called with the reason if the data directory cannot be used. Absent: the demo then fails. */
  readonly onDataUnusable?: (reason: string) => void;
  /** The configuration of the relay. */
  readonly config: Config;
  /** Returns the shell command that runs `callboard` with these words. */
  readonly callboard: (...words: readonly string[]) => string;
  /**
   * Returns the shell command that prints another sign-in link for the relay at this address. Null if there is no such
   * command.
   */
  readonly signInLine: ((url: string) => string) | null;
  readonly print: (text: string) => void;
  /** Resolves when the demo must end. */
  readonly stopped: Promise<void>;
  /** Called with the relay and its log when the relay is open, before it listens. */
  readonly onRelay?: (callboard: Callboard, log: Log) => void;
  /** The number of scenes per second, by default PACE. All other delays scale with it. */
  readonly pace?: number;
  /** The path of the Chromium to start; null: none is started. Absent: the demo looks for one. */
  readonly browser?: string | null;
};

/** The default number of scenes per second. It is slow enough to follow. */
export const PACE = 2;
/** The interval at which the demo prints its status, in milliseconds at the default pace. */
const STATUS_MS = 10_000;
/** How often the demo replaces a client by a new instance, in milliseconds at the default pace. */
const DEPLOY_MS = 30_000;
/** How often the demo adds a task to the board, in milliseconds at the default pace. */
const BOARD_TASK_MS = 20_000;
/** How long the demo waits for its clients before it makes the first call, in milliseconds. */
const CLIENTS_WAIT_MS = 5_000;
/** How long commands may take to finish when the demo ends, in milliseconds. */
const DRAIN_MS = 2_000;
/** How long the tokens of demo clients are valid, in seconds. Clients renew them. */
const TOKEN_SECONDS = 3600;

/**
 * Runs a relay in this process, clients in other processes and a page in a browser, and makes calls until `stopped`
 * resolves. Resolves when everything has ended. Rejects if a part cannot be started, for example with the error of
 * `listen`.
 */
export async function runDemo(options: DemoOptions): Promise<void> {
  const { env, print, stopped, pace = PACE } = options;
  const tempo = pace / PACE;
  const config = demoConfig(options.config);
  const log = createLog({ level: config.logLevel, secrets: secretsIn(config) });
  // The parts are disposed of in reverse order: the calls first, and the relay last.
  await using parts = new AsyncDisposableStack();
  const pageServer = parts.use(await startPageServer());
  const ownEnv = withoutSettings(env);
  const board = parts.use(await startBoard({ env: ownEnv, log, everyMs: BOARD_TASK_MS / tempo }));
  const signIn = createSignIn(config.adminToken);
  const allowedOrigins = [...config.allowedOrigins, pageServer.origin, board.origin];
  const unusable = options.onDataUnusable && { onDataUnusable: options.onDataUnusable };
  const callboard = parts.use(await openCallboard({ config: { ...config, allowedOrigins }, log, signIn, ...unusable }));
  options.onRelay?.(callboard, log);
  const url = await callboard.listen({ host: config.host, port: config.port });
  const relay = { url, adminToken: config.adminToken, token: tokensOf(config) };
  const stage = { relay, tempo, env: ownEnv, log };
  const page = await planPage(options, relay, pageServer);
  if (page.kind === 'browser') parts.use(new Keeper(() => startBrowser(page.program, pageServer.url)));
  const clients = CAST.map((member) => parts.use(startMember(member, stage)));
  parts.defer(() => callboard.drain(DRAIN_MS));
  // Added after the relay, so that the board closes its link before the relay drains.
  parts.defer(() => board[Symbol.asyncDispose]());
  const boardPages = page.kind === 'unbuilt' ? [] : await joinBoard(board, options, stage);
  const watched = boardPages.find(({ name }) => name === 'all');
  if (page.kind === 'browser' && watched)
    parts.use(new Keeper(() => startBrowser(page.program, `${watched.url}#auto`)));
  const codes = { code: signIn.code, consoleCode: signIn.issue() };
  const userToken = await relay.token(SHELL_USER);
  print(greeting(relay, { ...options, ...codes, userToken, page, board: boardPages }));
  const connected = Promise.all(clients.map(({ current }) => current.connected));
  await Promise.race([connected, stopped, sleep(CLIENTS_WAIT_MS, undefined, { ref: false })]);
  parts.use(startTraffic({ ...stage, pace }));
  const statusLoop = new AbortController();
  parts.defer(() => statusLoop.abort());
  void printStatus({ relay, everyMs: STATUS_MS / tempo, print, signal: statusLoop.signal });
  await stopped;
  print('Stopping.\n');
}

type DemoConfig = Config & { readonly adminToken: string; readonly secret: string };

/**
 * Returns the configuration with credentials for this run. Generated credentials are used as they are. To configured
 * ones a further admin token is added, so that none of them is printed, and a secret if there is none, so that the demo
 * can sign tokens.
 */
function demoConfig(config: Config): DemoConfig {
  const made = randomBytes(24).toString('base64url');
  const adminToken = config.generated ? (config.auth.adminTokens[0] ?? made) : made;
  const secret = config.auth.secret ?? randomBytes(32).toString('base64url');
  const adminTokens = [...new Set([...config.auth.adminTokens, adminToken])];
  // The demo's pages use the relay without TLS.
  return { ...config, tls: null, auth: { ...config.auth, adminTokens, secret }, adminToken, secret };
}

function tokensOf({ secret, auth }: DemoConfig): Relay['token'] {
  const { issuer, audience } = auth;
  return (user, scopes = ['connect', 'invoke']) =>
    signToken({ secret, user, scopes, ttlSeconds: TOKEN_SECONDS, now: Date.now(), issuer, audience });
}

/** Returns the environment for child processes: without the relay's settings, because they include its credentials. */
function withoutSettings(env: DemoOptions['env']): DemoOptions['env'] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('CALLBOARD_')));
}

async function planPage({ env, browser }: DemoOptions, relay: Relay, server: PageServer): Promise<PagePlan> {
  const library = await fetch(`${relay.url}/clients/runtime.js`, { method: 'HEAD' });
  if (!library.ok) return { kind: 'unbuilt' };
  server.show(relay.url, () => relay.token(PAGE.userId));
  if (browser === null) return { kind: 'by-hand', why: 'no browser was requested', url: server.url };
  const program = browser ?? findBrowser(env['PATH']);
  if (program === null) return { kind: 'by-hand', why: 'no Chromium was found', url: server.url };
  return { kind: 'browser', program };
}

/**
 * Returns the board's pages. Returns none if the board fails, which does not end the demo, or if the demo is stopped.
 */
async function joinBoard(
  board: Board,
  { stopped }: DemoOptions,
  { relay, log }: MemberStage,
): Promise<readonly BoardPage[]> {
  const token: Relay['token'] = (userId) => relay.token(userId, ['connect', 'invoke', 'host']);
  const joined = board.join({ url: relay.url, token }).catch((error: unknown) => {
    log.warn({ error }, 'the board of the demo cannot be shown');
  });
  return (await Promise.race([joined, stopped])) ?? [];
}

type MemberStage = {
  readonly relay: Relay;
  readonly tempo: number;
  readonly env: DemoOptions['env'];
  readonly log: Log;
};

function startMember(member: CastMember, stage: MemberStage): Keeper<ClientRun> {
  const keeper = new Keeper(() => startClient(member, stage));
  if (member.habit === 'deploys') void deploy(keeper, stage.tempo);
  return keeper;
}

/** One run of a client. `connected`: resolves after the client's first `welcome`, which may never come. */
type ClientRun = SupervisedRun & { readonly connected: Promise<void> };

/** Starts one client of the cast in a separate process. */
function startClient({ userId, clientId }: CastMember, { relay, tempo, env, log }: MemberStage): ClientRun {
  const { promise: connected, resolve } = Promise.withResolvers<void>();
  const part = startPart({
    program: 'client',
    what: 'a client of the demo',
    about: { client: clientId },
    env,
    log,
    onMessage({ type }) {
      if (type === 'connected') resolve();
      // A client requests a token before each connection.
      if (type === 'token_wanted') void relay.token(userId).then((token) => part.send({ type: 'token', token }));
    },
  });
  part.send({ type: 'start', url: connectUrl(relay.url), clientId, tempo });
  return { ...part, connected };
}

/** Replaces the client from time to time, until the keeper is closed. */
async function deploy(keeper: Keeper<ClientRun>, tempo: number): Promise<void> {
  const pause = pauseAt(tempo);
  const due = (): Promise<boolean> =>
    pause(roughly(DEPLOY_MS), keeper.closing).then(
      () => true,
      () => false,
    );
  while (await due()) await keeper.replace();
}

// Writes the text that explains the running demo to its user.

/**
 * How carol's page runs: in a browser that the demo starts, in a browser that the user opens, or not at all because the
 * browser library is not built.
 */
type PagePlan =
  | { readonly kind: 'browser'; readonly program: string }
  | { readonly kind: 'by-hand'; readonly why: string; readonly url: string }
  | { readonly kind: 'unbuilt' };

const NESTED =
  '{ users(first: 50) { nodes { userId connections { nodes { clientId status actions { items { name summary } } } } workers { idle { contextId } assigned { contextId taskId } } browserWindows { nodes { windowId draining busyCount } } pendingRpcs { nodes { clientId action stage ageMs } } streams { nodes { suffix messageCount } } } } }';
const EVENTS = 'subscription { connectionEvents { change cause at connection { userId clientId instanceId } } }';

/** The user of the token that the greeting prints. */
const SHELL_USER = 'bob';

/**
 * The content of the greeting. `code`: signs in to the GraphQL editor once. `consoleCode`: signs in to the console
 * once.
 */
type Shown = Pick<DemoOptions, 'callboard' | 'signInLine'> & {
  readonly page: PagePlan;
  readonly board: readonly BoardPage[];
  readonly code: string;
  readonly consoleCode: string;
  /** A token of SHELL_USER. */
  readonly userToken: string;
};

/** Returns the text that the demo prints after its clients have been started. */
function greeting({ url, adminToken }: Relay, shown: Shown): string {
  const { page, board, code, consoleCode, userToken, callboard, signInLine } = shown;
  const again = signInLine === null ? '' : `  sign in again ${signInLine(url)}\n`;
  return `callboard demo: a relay and its clients, kept busy until you stop it (Ctrl-C).

  open         ${url}/console/#code=${consoleCode}
                 the console (signed in, once, within 10 minutes): watch the calls
               ${url}/         overview
               ${url}/graphql#code=${code}
                 the GraphQL editor (signed in, once, within 10 minutes)
${again}  admin token  ${adminToken}

Clients:
${[...CAST.map(({ about, ...member }) => row(member, about)), row(PAGE, aboutPage(page)), ...boardRows(board, page)].join('\n')}

For the command line (docs/cli.md), paste into another terminal; TOKEN is for the user "${SHELL_USER}", ADMIN for an administrator:

export CALLBOARD_URL=${url} CALLBOARD_TOKEN=${adminToken} TOKEN=${userToken} ADMIN=${adminToken}

and then, for example: ${callboard('clients', 'ls')}

Try, in another terminal:
${commands({ url, adminToken })
  .map(({ about, command }) => `\n  # ${about}\n  ${command}\n`)
  .join('')}
`;
}

/** Returns example commands, one shell line each. */
function commands({ url, adminToken }: Pick<Relay, 'url' | 'adminToken'>) {
  const curl = `curl -sS -H 'authorization: Bearer ${adminToken}'`;
  const ask = (query: string): string => `-H 'content-type: application/json' -d '${JSON.stringify({ query })}'`;
  return [
    { about: "REST: alice's connections, streams and waiting calls", command: `${curl} ${url}/users/alice` },
    { about: 'GraphQL: all of it in one nested query', command: `${curl} ${ask(NESTED)} ${url}/graphql` },
    {
      about: 'SSE: clients that connect, disconnect, resume and are replaced, live',
      command: `${curl} -N -H 'accept: text/event-stream' ${ask(EVENTS)} ${url}/graphql`,
    },
    {
      about: "REST: bob's workers, idle or with their assigned task",
      command: `${curl} '${url}/workers?user_id=bob'`,
    },
    {
      about: 'REST: messages and duplicates ingested in the last hour',
      command: `${curl} '${url}/dedup/stats?window_seconds=3600'`,
    },
  ];
}

function row({ userId, clientId, clientType }: Omit<CastMember, 'habit' | 'about'>, about: string): string {
  return `  ${userId.padEnd(6)} ${clientId.padEnd(12)} ${clientType.padEnd(8)} ${about}`;
}

/** Returns rows about the board's host and its pages. A person who opens a page needs no credentials of the relay. */
function boardRows(board: readonly BoardPage[], page: PagePlan): readonly string[] {
  if (board.length === 0) return [];
  const viewers = page.kind === 'browser' ? 'both are in a real page; open one too' : 'open it';
  const pages = board.map(({ name, url }) => `${' '.repeat(30)} as ${name}: ${url}`);
  return [row(HOST, `lets two viewers watch and change a task board; ${viewers}`), ...pages];
}

function aboutPage(page: PagePlan): string {
  if (page.kind === 'browser') return `runs in a real page (${page.program})`;
  if (page.kind === 'by-hand') return `${page.why}: open ${page.url} to start it`;
  return 'is missing: the browser library is not built (npm run build)';
}

const OUTCOMES = ['completed', 'failed', 'cancelled', 'expired', 'outcome_unknown'] as const;

type StatusOptions = Pick<DemoOptions, 'print'> & {
  readonly relay: Relay;
  readonly everyMs: number;
  readonly signal: AbortSignal;
};

/** Prints one status line about the relay every `everyMs` milliseconds until the signal is aborted. Never rejects. */
async function printStatus({ relay, everyMs, print, signal }: StatusOptions): Promise<void> {
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal }).catch(() => {});
    const line = await readStatus(relay, signal).catch(() => null);
    if (line !== null && !signal.aborted) print(`${new Date().toLocaleTimeString('en-GB')}  ${line}\n`);
  }
}

/** Reads the state as an operator would: with the admin client, and from the metrics. */
async function readStatus({ url, adminToken }: Relay, signal: AbortSignal): Promise<string> {
  const stoppable: typeof fetch = (to, init) => fetch(to, { ...init, signal });
  const admin = createAdmin({ url, token: adminToken, retries: 0, fetch: stoppable });
  const headers = { authorization: `Bearer ${adminToken}` };
  const [connections, waiting, workers, dedup, metrics] = await Promise.all([
    admin.connections({ first: 1000 }),
    admin.pendingCount(),
    admin.contexts({ filter: { ownership: 'WORKER' }, first: 1000 }),
    admin.dedup({ windowSeconds: 3600 }),
    stoppable(`${url}/metrics`, { headers }).then((response) => response.text()),
  ]);
  const connected = connections.nodes.filter(({ status }) => status === 'CONNECTED').length;
  const busy = workers.nodes.filter(({ taskId }) => taskId !== null).length;
  const { seen, duplicates } = dedup.stats;
  const ended = OUTCOMES.map((outcome) => {
    const count = total(metrics, `callboard_commands_ended_total{outcome="${outcome}"}`);
    return `${count} ${outcome.replaceAll('_', ' ')}`;
  });
  const late = total(metrics, 'callboard_late_results_total');
  const refused = total(metrics, 'callboard_commands_refused_total{');
  const lost = total(metrics, 'callboard_links_closed_total{');
  return [
    `${connected} of ${connections.nodes.length} connected, ${waiting.count} waiting`,
    ended.join(', '),
    `${refused} refused, ${late} late, ${lost} links lost`,
    `${busy} of ${workers.nodes.length} workers busy`,
    `${duplicates} of ${seen} messages were duplicates`,
  ].join(' | ');
}

/** Returns the sum of the metric samples whose lines begin with `prefix`. */
function total(metrics: string, prefix: string): number {
  const lines = metrics.split('\n').filter((line) => line.startsWith(prefix));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome', 'microsoft-edge'];
const PLACES = [
  '/usr/bin',
  '/usr/local/bin',
  '/snap/bin',
  '/opt/google/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS',
  '/Applications/Chromium.app/Contents/MacOS',
];
const MAC_NAMES = ['Google Chrome', 'Chromium'];
const ARGS = [
  '--headless',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-breakpad',
  '--disable-dev-shm-usage',
  // The browser exits when this pipe closes. So it cannot outlive the demo, even after a crash.
  '--remote-debugging-pipe',
];

/** Returns the path of the first Chromium in `path` or in the usual folders; null if there is none. */
export function findBrowser(path: string | undefined): string | null {
  const folders = [...(path ?? '').split(delimiter).filter((folder) => folder !== ''), ...PLACES];
  const files = folders.flatMap((folder) => [...NAMES, ...MAC_NAMES].map((name) => join(folder, name)));
  return files.find(isProgram) ?? null;
}

/** Opens a page in a headless browser with a temporary profile, which is removed when the browser ends. */
function startBrowser(program: string, url: string): SupervisedRun {
  const profile = mkdtempSync(join(tmpdir(), 'callboard-demo-'));
  const args = [...ARGS, `--user-data-dir=${profile}`, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), url];
  // The browser has its own process group, so that Ctrl-C reaches only the demo, which then ends the browser.
  const detached = process.platform !== 'win32';
  const child = spawn(program, args, { detached, stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  for (const pipe of child.stdio) pipe?.on('error', () => {});
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('error', () => resolve());
  child.once('exit', () => resolve());
  const ended = promise.then(() => rm(profile, { recursive: true, force: true, maxRetries: 10 })).catch(() => {});
  return {
    ended,
    end(): Promise<void> {
      const [, , , commands] = child.stdio;
      if (commands instanceof Writable) commands.write('{"id":1,"method":"Browser.close"}\0');
      return endWithin(child, ended);
    },
  };
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
