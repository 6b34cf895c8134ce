/** Two relays behind a proxy of deploy/proxies, restarted one after another while commands and events go on. */
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { signToken } from '../../../src/http/token.ts';
import { freePort, startRedis } from '../../kit/redis.ts';
import { startLoad, type LoadFigures } from './load.ts';
import { startProxy, type ProxyName } from './proxies.ts';
import { ofCheckout, startRelayProcess, type RelayProcess, type ServeCommand } from './relay-process.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { openAudience } from './viewers.ts';

const SECRET = 'a secret of the tests, long enough for HS256';
const ADMIN = 'admin-token-of-the-rolling-restart';
const NODES = ['a', 'b'] as const;
/** The number of commands that must end between two restarts. */
const COMMANDS = 50;
const VIEWERS = 3;

export type RestartFigures = LoadFigures & {
  /** The exit code of each relay that was stopped. */
  readonly exits: readonly (number | null)[];
  /** For each viewer: how often its stream was live again, and how many `gap` events it got. */
  readonly viewers: readonly { readonly reconnects: number; readonly gaps: number }[];
};

/** Runs the restart and resolves with what became of every command and every viewer. */
export async function rollingRestart(proxy: ProxyName, serve: ServeCommand = ofCheckout): Promise<RestartFigures> {
  await using opened = new AsyncDisposableStack();
  const { path } = opened.use(temporaryFolder());
  const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'everysec']);
  opened.defer(() => redis.stop());
  const ports = [await freePort(), await freePort()];
  const start = (at: number): Promise<RelayProcess> =>
    startRelayProcess(
      {
        CALLBOARD_REDIS_URL: redis.url,
        CALLBOARD_NODE_ID: NODES[at] ?? '',
        CALLBOARD_HOST: '127.0.0.1',
        CALLBOARD_PORT: String(ports[at]),
        CALLBOARD_SECRET: SECRET,
        CALLBOARD_ADMIN_TOKEN: ADMIN,
        CALLBOARD_TRUST_PROXY: 'true',
      },
      serve,
    );
  const relays = await Promise.all(ports.map((_, at) => start(at)));
  opened.defer(async () => void (await Promise.all(relays.map((relay) => relay[Symbol.asyncDispose]()))));
  const front = opened.use(await startProxy(proxy, path, ...ports));
  opened.adopt(getCACertificates('default'), setDefaultCACertificates);
  setDefaultCACertificates([...getCACertificates('default'), front.certificate]);

  const url = `https://localhost:${front.port}`;
  const token = (): Promise<string> =>
    signToken({
      ...{ secret: SECRET, user: 'alice', scopes: ['connect', 'invoke', 'host'] },
      ...{ ttlSeconds: 3600, now: Date.now() },
    });
  const load = opened.use(await startLoad({ url, token, clients: 4, callers: 8 }));
  const audience = opened.use(await openAudience({ url, token, count: VIEWERS }));
  const exits: (number | null)[] = [];
  for (const [at, relay] of relays.entries()) {
    await load.more(COMMANDS);
    const held = await load.hold();
    const stopped = relay.stop();
    held.release();
    exits.push(await stopped);
    await held.ended;
    relays[at] = await start(at);
    await ready(ports[at] ?? 0);
  }
  await load.more(COMMANDS);
  await publishUntilAllReceived(audience);
  const figures = await load.finish();
  const viewers = audience.viewers.map(({ lives, gaps }) => ({ reconnects: lives - 1, gaps }));
  return { ...figures, exits, viewers };
}

/** Publishes again while a viewer is still reconnecting. Resolves when each viewer has received an event. */
async function publishUntilAllReceived({
  viewers,
  publisher,
}: Awaited<ReturnType<typeof openAudience>>): Promise<void> {
  const missing = new Set(viewers);
  for (let data = 1; missing.size > 0; data++) {
    await publisher.publish({ name: 'site_changed', data });
    const soon = new Promise<void>((done) => setTimeout(done, 250));
    await Promise.all(
      [...missing].map((viewer) => Promise.race([viewer.received(data).then(() => missing.delete(viewer)), soon])),
    );
  }
}

/** Resolves when the relay itself, past the proxy, is ready. */
async function ready(port: number): Promise<void> {
  while (!(await fetch(`http://127.0.0.1:${port}/readyz`)).ok) await new Promise((done) => setTimeout(done, 50));
}
