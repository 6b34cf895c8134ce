/**
 * Runs the commands that start a relay: `callboard serve`, and `callboard demo`, which adds demo clients and traffic.
 */
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import { openCallboard, servesMcp, type Callboard } from '../callboard.ts';
import { readConfig, type Config } from '../config.ts';
import { secretsIn } from '../config/auth-config.ts';
import { DRAIN_MS } from '../core/limits.ts';
import { createSignIn } from '../http/sign-in.ts';
import { signToken } from '../http/tokens.ts';
import { createLog } from '../platform/log.ts';
import { systemClock } from '../platform/system.ts';
import { endOnCrash } from './crash.ts';
import { UsageError } from './exit-codes.ts';
import { splitFlags } from './flags.ts';
import { allowHeapGrowth } from './heap-growth.ts';
import { pasteable } from './installation.ts';
import type { Io } from './io.ts';
import { reloadOnChange } from './reload.ts';
import { explainTaken } from './taken-port.ts';
import { signInLine } from './tools.ts';
import { openTraceExport } from './trace-export.ts';
import { keepTrial } from './trial-credentials.ts';

const ALONE =
  'A node id is given, but CALLBOARD_REDIS_URL is not set: this relay is no node of a fleet. It is a trial, with credentials of its own.\n';

/** Runs a relay until the first stop signal, and then drains and closes it. */
export async function serve(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { switches: ['--json', '--fresh'] });
  const { config, keptIn, onDataUnusable } = keepTrial(readConfig(io.env, rest), own.has('--fresh'), io);
  const log = createLog({ level: config.logLevel, secrets: secretsIn(config) });
  for (const warning of config.warnings) log.warn({}, warning);
  if (config.generated && config.nodeId !== null) io.complain(ALONE);
  if (config.redis === null && !config.audit.file && config.dataDir === null && !config.generated)
    log.warn({}, 'the audit is kept in memory and is lost when the relay ends: set DATA_DIR or AUDIT_FILE to keep it');
  const credentials = config.generated ? await trialCredentials(config) : null;
  const signIn = credentials && createSignIn(credentials.adminToken);
  const traces = await openTraceExport(io.env, { log, clock: systemClock });
  const tracing = traces && { tracing: traces.api };
  const crash = endOnCrash(io, log);
  const unusable = onDataUnusable && { onDataUnusable };
  const callboard = await openCallboard({ config, log, ...(signIn && { signIn }), ...tracing, ...unusable });
  crash.ends(callboard);
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  io.onStop(resolve);
  const stopReload = reloadOnChange(config, { callboard, env: io.env, argv: rest, clock: systemClock, log });
  const url = await listen(callboard, config, activatedSocket(io.env, process.pid));
  const { mode, nodeId } = callboard.core;
  const codes = { code: signIn?.code ?? null, consoleCode: signIn?.issue() ?? null };
  const started = { url, mode, nodeId, credentials, keptIn, mcp: servesMcp(config), ...codes };
  io.print(own.has('--json') ? jsonLine(started) : greeting(started));
  allowHeapGrowth();
  callboard.preload();
  await stopped;
  stopReload();
  log.info({}, 'stopping');
  await callboard.close({ withinMs: DRAIN_MS });
  const ended = await (traces?.close() ?? true);
  log.info({}, 'stopped');
  if (!ended) io.endNow?.();
}

/** Starts listening and returns the address. If this fails, closes the relay and throws an error that explains why. */
async function listen(callboard: Callboard, config: Config, fd: number | null): Promise<string> {
  const { host, port } = config;
  try {
    return await callboard.listen(fd === null ? { host, port } : { host, fd });
  } catch (error) {
    await callboard.close();
    throw await explainTaken(error, config, 'serve');
  }
}

// Prints how to use the relay that was started.

type Started = {
  readonly url: string;
  readonly mode: string;
  readonly nodeId: string;
  readonly credentials: Credentials | null;
  /** Whether the relay serves agents. */
  readonly mcp: boolean;
  /** The file that stores the credentials; null if no file does. */
  readonly keptIn: string | null;
  /** The one-time code with which a person signs in to the GraphQL editor; null if the editor asks for a token. */
  readonly code: string | null;
  /** The one-time code with which a person signs in to the console; null if the console asks for a token. */
  readonly consoleCode: string | null;
};

/** Returns one line of JSON, for programs that start a relay. */
function jsonLine({ url, credentials }: Started): string {
  const generated = credentials && {
    admin_token: credentials.adminToken,
    secret: credentials.secret,
    user_token: credentials.userToken,
  };
  return `${JSON.stringify({ event: 'listening', url, ...generated })}\n`;
}

/** Returns a text for people: the addresses to open, and commands to paste. */
function greeting(started: Started): string {
  const { url, mode, nodeId, credentials, keptIn, mcp, code, consoleCode } = started;
  const editor = code === null ? `${url}/graphql` : `${url}/graphql#code=${code}`;
  const page = consoleCode === null ? `${url}/console/` : `${url}/console/#code=${consoleCode}`;
  const once = code === null ? '' : ' (signed in, once, within 10 minutes)';
  return `callboard is listening at ${url} (${mode} mode, node ${nodeId})
  console         ${page}${once}${keptIn === null ? '' : `\n  sign in again   ${signInLine(url)}`}
  overview        ${url}/
  GraphQL editor  ${editor}${once}
  REST reference  ${url}/reference${mcp ? `\n  agents (MCP)    ${url}/mcp` : ''}
${credentials ? trial(url, credentials, keptIn) : configured(url)}`;
}

function configured(url: string): string {
  return `
Try, with an administrator's token:
  curl -H "authorization: Bearer $ADMIN" ${url}/users
`;
}

function trial(url: string, { adminToken, secret, userToken }: Credentials, keptIn: string | null): string {
  const kept = keptIn === null ? 'last for this run' : `are kept in ${keptIn} (--fresh makes new ones)`;
  return `
No credentials are configured. These were generated and ${kept}; the secret is ${secret}
TOKEN is for the user "${TRIAL_USER}" (scopes connect invoke host, ${TRIAL_DAYS} days), ADMIN for an administrator. Paste into another terminal:

export TOKEN=${userToken} ADMIN=${adminToken}

Then a client, which runs in the background, and a call of it:

${client(url)} &
curl -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' \\
  -d '{"params":{"text":"milk"},"connect_within_ms":10000}' ${url}/connections/${TRIAL_USER}/kiosk-1/actions/notes.add

And who is connected, as the administrator sees it:

curl -H "authorization: Bearer $ADMIN" ${url}/connections
`;
}

/** Returns a shell command that runs a client. Its lines contain no single quotes, because it is quoted with them. */
function client(url: string): string {
  return `${nodeCommand()} --input-type=module -e '
import { env } from "node:process";
import { createRuntime } from "${runtimeSpecifier()}";
const runtime = createRuntime({
  url: "${url.replace(/^http/, 'ws')}/connect", token: env.TOKEN, clientId: "kiosk-1", clientType: "console",
});
runtime.handle("notes.add", { summary: "Adds a note" }, ({ text }) => ({ added: text }));
runtime.connect();'`;
}

/** Returns the shell command that runs the same Node as this process. */
function nodeCommand(): string {
  return process.execPath.includes(`${sep}node_modules${sep}`) ? 'npx node' : 'node';
}

/**
 * Returns the specifier by which a program in this folder imports the client runtime: the package's name or, if the
 * package is not installed, the URL of its file.
 */
function runtimeSpecifier(): string {
  const name = 'callboard/runtime';
  try {
    createRequire(join(process.cwd(), 'client.mjs')).resolve(name);
    return name;
  } catch {
    return import.meta.resolve(
      import.meta.filename.endsWith('.ts') ? '../clients/runtime/index.ts' : '../clients/runtime/index.js',
    );
  }
}

/** The number of the first file descriptor that a service manager passes, as systemd's sd_listen_fds defines it. */
const FIRST_FD = 3;

/**
 * Returns the file descriptor of the listening socket that a service manager such as systemd passed to this process;
 * null if it passed none. LISTEN_PID and LISTEN_FDS describe the sockets. Throws UsageError if there are several,
 * because a relay listens on one socket.
 */
export function activatedSocket(env: Readonly<Record<string, string | undefined>>, pid: number): number | null {
  const { LISTEN_PID, LISTEN_FDS } = env;
  if (LISTEN_FDS === undefined || LISTEN_PID !== String(pid)) return null;
  if (LISTEN_FDS !== '1') throw new UsageError(`LISTEN_FDS: expected 1 socket, got ${LISTEN_FDS}`);
  return FIRST_FD;
}

/** The user of the generated trial token. */
const TRIAL_USER = 'demo';
/**
 * How many days the printed token is valid. It stays valid when the trial is started again, because the secret is the
 * same.
 */
const TRIAL_DAYS = 30;

/** Generated credentials: the admin token, the secret, and a token of TRIAL_USER for TRIAL_DAYS. */
type Credentials = { readonly adminToken: string; readonly secret: string; readonly userToken: string };

/** Returns the credentials of a trial for printing; null if the configuration lacks an admin token or the secret. */
async function trialCredentials({ auth }: Config): Promise<Credentials | null> {
  const [adminToken] = auth.adminTokens;
  if (adminToken === undefined || auth.secret === null) return null;
  const userToken = await signToken({
    secret: auth.secret,
    user: TRIAL_USER,
    scopes: ['connect', 'invoke', 'host'],
    ttlSeconds: TRIAL_DAYS * 24 * 3600,
    now: Date.now(),
    issuer: auth.issuer,
    audience: auth.audience,
  });
  return { adminToken, secret: auth.secret, userToken };
}

// The command `callboard demo`.

/** The highest pace, in scenes per second. At a higher pace, the demo would mostly measure the machine. */
const PACE_MAX = 50;

/** Runs the demo until the first stop signal. */
export async function demo(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--pace', '--browser'], switches: ['--fresh'] });
  const pace = readPace(own.get('--pace'));
  const browser = own.get('--browser');
  const given = readConfig({ CALLBOARD_LOG_LEVEL: 'warn', ...io.env }, rest);
  const { config, keptIn, onDataUnusable } = keepTrial(given, own.has('--fresh'), io);
  const { runDemo } = await import('../../demo/demo.ts');
  allowHeapGrowth();
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  io.onStop(resolve);
  await runDemo({
    env: io.env,
    config,
    callboard: pasteable,
    signInLine: keptIn === null ? null : signInLine,
    print: io.print,
    stopped,
    ...(onDataUnusable && { onDataUnusable }),
    onRelay: (callboard, log) => endOnCrash(io, log).ends(callboard),
    ...(pace !== undefined && { pace }),
    ...(browser !== undefined && { browser: browser === 'none' ? null : browser }),
  }).catch(async (error: unknown) => {
    throw await explainTaken(error, config, 'demo');
  });
}

function readPace(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const pace = Number(text);
  if (pace >= 0.1 && pace <= PACE_MAX) return pace;
  throw new UsageError(`--pace: expected 0.1 to ${PACE_MAX} calls per second`);
}
