/**
 * Restarts two relays behind a proxy of deploy/proxies one after the other, while commands run and events are
 * published.
 */
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { signToken } from '../../src/http/tokens.ts';
import { freePort } from '../../test/kit/free-port.ts';
import { startRedis } from '../../test/kit/redis.ts';
import { startLoad, type Load, type LoadFigures } from './load.ts';
import { startProxy, type ProxyName } from '../../test/deploy/kit/proxies.ts';
import { ofCheckout, startRelayProcess, type RelayProcess, type ServeCommand } from './relay-process.ts';
import type { Say } from './steps.ts';
import { openAudience, type Audience } from './viewers.ts';

const SECRET = 'a secret of the tests, long enough for HS256';
const ADMIN = 'admin-token-of-the-rolling-restart';
const NODES = ['a', 'b'] as const;
/** The number of commands that must end between two restarts. */
const COMMANDS = 50;
const VIEWERS = 3;
/** The time limit for all restarts together, in milliseconds: several times as long as they take on a slow machine. */
const LIMIT_MS = 240_000;

type RestartFigures = LoadFigures & {
  /** The exit code of each relay that was stopped. */
  readonly exits: readonly (number | null)[];
  /** The figures of each viewer: how often its stream became live again, and how many gaps the relay reported to it. */
  readonly viewers: readonly { readonly reconnects: number; readonly gaps: number }[];
};

type RestartOptions = {
  /** The command that runs a relay; default: the relay of this checkout. */
  readonly serve?: ServeCommand;
  /** Receives a text for each step, with the time since the start. */
  readonly say?: Say;
};

/**
 * Runs the restarts, and resolves with the results of all commands and viewers. Rejects if it takes longer than
 * LIMIT_MS.
 */
export async function rollingRestart(
  proxy: ProxyName,
  { serve = ofCheckout, say = () => {} }: RestartOptions = {},
): Promise<RestartFigures> {
  const startedAt = Date.now();
  const note = (text: string): void => say(`${((Date.now() - startedAt) / 1000).toFixed(1)} s: ${text}`);
  await using opened = new AsyncDisposableStack();
  const { path } = opened.use(mkdtempDisposableSync(join(tmpdir(), 'callboard-deploy-')));
  const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'everysec']);
  opened.defer(() => redis.stop());
  const nodes: Node[] = [];
  opened.defer(async () => void (await Promise.all(nodes.map(({ relay }) => relay[Symbol.asyncDispose]()))));
  for (const id of NODES) {
    const port = await freePort();
    const start = (): Promise<RelayProcess> => startRelayProcess(settingsOf(id, port, redis.url), serve);
    nodes.push({ id, port, start, relay: await start() });
  }
  const front = opened.use(await startProxy(proxy, { folder: path, relayPorts: nodes.map(({ port }) => port) }));
  opened.adopt(getCACertificates('default'), setDefaultCACertificates);
  setDefaultCACertificates([...getCACertificates('default'), front.certificate]);

  const at = { url: `https://localhost:${front.port}`, token };
  const load = opened.use(await startLoad({ ...at, clients: 4, callers: 8 }));
  const audience = opened.use(await openAudience({ ...at, count: VIEWERS }));
  note('clients, callers and viewers are connected');
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`not done after ${LIMIT_MS / 1000} s`)), LIMIT_MS);
  opened.defer(() => clearTimeout(timer));
  const exits = await Promise.race([restartInTurn(nodes, { load, audience, note }), late.promise]);
  const figures = await Promise.race([load.finish(), late.promise]);
  const viewers = audience.viewers.map(({ lives, gaps }) => ({ reconnects: lives - 1, gaps }));
  return { ...figures, exits, viewers };
}

type Node = {
  readonly id: string;
  readonly port: number;
  readonly start: () => Promise<RelayProcess>;
  relay: RelayProcess;
};
type Scene = { readonly load: Load; readonly audience: Audience; readonly note: Say };

/** Stops each relay while commands run on it, and starts it again. Resolves with the exit codes. */
async function restartInTurn(nodes: readonly Node[], { load, audience, note }: Scene): Promise<(number | null)[]> {
  const exits: (number | null)[] = [];
  for (const node of nodes) {
    await load.more(COMMANDS);
    const held = await load.hold();
    note(`${COMMANDS} commands ended, and each client runs one more: relay ${node.id} gets SIGTERM`);
    const { draining, ended } = node.relay.stop();
    await draining;
    held.release();
    exits.push(await ended);
    note(`relay ${node.id} has stopped`);
    await held.ended;
    note('the commands that ran have ended');
    node.relay = await node.start();
    await requireReady(node.port);
    note(`relay ${node.id} is ready again`);
  }
  await load.more(COMMANDS);
  note(`${COMMANDS} commands ended`);
  await audience.reachAll();
  note('every viewer received an event');
  return exits;
}

function settingsOf(id: string, port: number, redisUrl: string): Readonly<Record<string, string>> {
  return {
    CALLBOARD_REDIS_URL: redisUrl,
    CALLBOARD_NODE_ID: id,
    CALLBOARD_HOST: '127.0.0.1',
    CALLBOARD_PORT: String(port),
    CALLBOARD_SECRET: SECRET,
    CALLBOARD_ADMIN_TOKEN: ADMIN,
    CALLBOARD_TRUST_PROXY: 'true',
  };
}

function token(): Promise<string> {
  const scopes = ['connect', 'invoke', 'host'];
  return signToken({ secret: SECRET, user: 'alice', scopes, ttlSeconds: 3600, now: Date.now() });
}

/**
 * Throws unless the relay is ready. The relay is asked directly, not through the proxy. It is ready as soon as it
 * listens.
 */
async function requireReady(port: number): Promise<void> {
  const { status } = await fetch(`http://127.0.0.1:${port}/readyz`);
  if (status !== 200) throw new Error(`a relay listens and /readyz answers ${status}`);
}
