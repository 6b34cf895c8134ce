/** Starts the demo: a relay, its clients, their traffic, the web page and the task board. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { openCallboard, type Callboard } from '../callboard.ts';
import { readConfig, secretsIn, type Config } from '../config.ts';
import type { Log } from '../core/log.ts';
import { createSignIn } from '../http/sign-in.ts';
import { signToken } from '../http/token.ts';
import { createLog } from '../platform/log.ts';
import { startBoard, type Board, type BoardPage } from './board/start.ts';
import { findBrowser, startBrowser } from './browser.ts';
import { CAST, PAGE, type CastMember } from './cast.ts';
import { greeting, type PagePlan } from './greeting.ts';
import { Keeper } from './keeper.ts';
import { startPageServer, type PageServer } from './page.ts';
import { pauseAt, roughly } from './pause.ts';
import { startClient, type ClientRun } from './process.ts';
import { connectUrl, type Relay } from './relay.ts';
import { printStatus } from './status.ts';
import { startTraffic } from './traffic.ts';

export type DemoOptions = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The command-line flags of the relay. */
  readonly argv: readonly string[];
  readonly print: (text: string) => void;
  /** Resolves when the demo must end. */
  readonly stopped: Promise<void>;
  /** Called with the relay and its log when the relay is open. */
  readonly onRelay?: (callboard: Callboard, log: Log) => void;
  /** The number of scenes per second, by default PACE. All other delays scale with it. */
  readonly pace?: number;
  /** The Chromium to start; null starts none. When absent, the demo looks for one. */
  readonly browser?: string | null;
};

/** The default number of scenes per second: slow enough to read along. */
export const PACE = 2;
/** The interval at which the demo prints its status, in milliseconds at the default pace. */
const STATUS_MS = 10_000;
/** The interval at which the demo replaces a client by a new instance, in milliseconds at the default pace. */
const DEPLOY_MS = 30_000;
/** The interval at which the demo adds a task to the board, in milliseconds at the default pace. */
const BOARD_TASK_MS = 20_000;
/** How long the demo waits for its clients before it makes the first call, in milliseconds. */
const CLIENTS_WAIT_MS = 5_000;
/** How long commands may take to finish when the demo ends, in milliseconds. */
const DRAIN_MS = 2_000;
/** How long the tokens of demo clients are valid, in seconds. Clients renew them. */
const TOKEN_SECONDS = 3600;

/**
 * Runs a relay in this process, clients in separate processes and a page in a browser, and makes calls until `stopped`
 * resolves. Everything that it started has ended when it resolves. Rejects with the error of `readConfig` or `listen`.
 */
export async function runDemo(options: DemoOptions): Promise<void> {
  const { env, argv, print, stopped, pace = PACE } = options;
  const tempo = pace / PACE;
  const config = demoConfig(readConfig({ CALLBOARD_LOG_LEVEL: 'warn', ...env }, argv));
  const log = createLog({ level: config.logLevel, secrets: secretsIn(config) });
  // The parts end in reverse order: calls first, the relay last.
  await using parts = new AsyncDisposableStack();
  const pageServer = parts.use(await startPageServer());
  const ownEnv = withoutSettings(env);
  const board = parts.use(await startBoard({ env: ownEnv, log, everyMs: BOARD_TASK_MS / tempo }));
  const signIn = createSignIn(config.adminToken);
  const allowedOrigins = [...config.allowedOrigins, pageServer.origin, board.origin];
  const callboard = parts.use(await openCallboard({ config: { ...config, allowedOrigins }, log, signIn }));
  options.onRelay?.(callboard, log);
  const url = await callboard.listen({ host: config.host, port: config.port });
  const relay = { url, adminToken: config.adminToken, token: tokensOf(config) };
  const stage = { relay, tempo, env: ownEnv, log };
  const page = await planPage(options, relay, pageServer);
  if (page.kind === 'browser') parts.use(new Keeper(() => startBrowser(page.program, pageServer.url)));
  const clients = CAST.map((member) => parts.use(startMember(member, stage)));
  parts.defer(() => callboard.drain(DRAIN_MS));
  // The board closes its link before the relay drains.
  parts.defer(() => board[Symbol.asyncDispose]());
  const boardPages = page.kind === 'unbuilt' ? [] : await joinBoard(board, options, stage);
  const watched = boardPages.find(({ name }) => name === 'all');
  if (page.kind === 'browser' && watched)
    parts.use(new Keeper(() => startBrowser(page.program, `${watched.url}#auto`)));
  print(greeting(relay, { page, board: boardPages, code: signIn.code, consoleCode: signIn.issue() }));
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
 * Adds credentials for this run. It adds an admin token, so that no configured token is printed. It adds a secret if
 * there is none, so that the demo can sign tokens.
 */
function demoConfig(config: Config): DemoConfig {
  const made = randomBytes(24).toString('base64url');
  const adminToken = config.generated ? (config.auth.adminTokens[0] ?? made) : made;
  const secret = config.auth.secret ?? randomBytes(32).toString('base64url');
  const adminTokens = [...new Set([...config.auth.adminTokens, adminToken])];
  // The pages of the demo speak to the relay without TLS.
  return { ...config, tls: null, auth: { ...config.auth, adminTokens, secret }, adminToken, secret };
}

function tokensOf({ secret, auth }: DemoConfig): Relay['token'] {
  const { issuer, audience } = auth;
  return (user, scopes = ['connect', 'invoke']) =>
    signToken({
      secret,
      user,
      scopes,
      ttlSeconds: TOKEN_SECONDS,
      now: Date.now(),
      issuer,
      audience,
    });
}

/**
 * Returns the environment of child processes. It lacks the relay's settings, because they include the relay's
 * credentials.
 */
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
 * Returns the pages of the board's viewers. There are none if the board fails, which does not stop the rest of the
 * demo.
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

function startMember(member: CastMember, { relay, ...stage }: MemberStage): Keeper<ClientRun> {
  const { url, token } = relay;
  const keeper = new Keeper(() => startClient({ ...stage, member, url: connectUrl(url), token }));
  if (member.habit === 'deploys') void deploy(keeper, stage.tempo);
  return keeper;
}

/** Replaces the client from time to time until the keeper is closed. */
async function deploy(keeper: Keeper<ClientRun>, tempo: number): Promise<void> {
  const pause = pauseAt(tempo);
  const due = (): Promise<boolean> =>
    pause(roughly(DEPLOY_MS), keeper.closing).then(
      () => true,
      () => false,
    );
  while (await due()) await keeper.replace();
}
