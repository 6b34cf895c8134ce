/**
 * Runs a process of honest clients, which run each command that they receive once, and log it on disk. Its one argument
 * is a ClientOrder as JSON. The process prints `ready` when every link is up, and ends when its standard input does.
 */
import { createRuntime, type Call, type Params, type Runtime } from '../../../src/clients/runtime/index.ts';
import { signToken } from '../../../src/http/tokens.ts';
import type { ClientOrder } from './client-order.ts';
import { forgeEnds } from './forger.ts';
import { openLog, type FaultLog } from '../log/log.ts';

/** The time for which tokens are valid, in seconds: longer than any episode. */
const DAY_SECONDS = 86_400;
/**
 * The fraction of the usual backoff after which a client without a link reconnects, so that a run need not wait for a
 * long backoff.
 */
const RETRY_SHARE = 0.1;

function work(log: FaultLog, who: { user: string; client: string }, instance: () => string) {
  return async ({ canary, workMs, filler }: Params, call: Call): Promise<unknown> => {
    const key = { ...who, command: call.commandId, instance: instance() };
    log.record({ event: 'run-begin', ...key, canary: typeof canary === 'string' ? canary : null });
    if (typeof workMs === 'number' && workMs > 0) await new Promise((done) => setTimeout(done, workMs));
    log.record({ event: 'run-end', ...key });
    return { canary, by: key.instance, filler };
  };
}

function startClient(order: ClientOrder, log: FaultLog, who: ClientOrder['clients'][number]): Runtime {
  const { user, client } = who;
  const { secret } = order;
  const runtime: Runtime = createRuntime({
    url: order.link,
    token: () => signToken({ secret, user, scopes: ['connect'], ttlSeconds: DAY_SECONDS, now: Date.now() }),
    clientId: client,
    clientType: 'console',
    random: () => Math.random() * RETRY_SHARE,
    onStatus: ({ state }) => {
      if (state !== 'connected' && state !== 'disconnected') return;
      log.write({ event: 'link', ...who, instance: runtime.instanceId, up: state === 'connected' });
    },
  });
  runtime.handle(
    'work',
    {},
    work(log, who, () => runtime.instanceId),
  );
  runtime.connect();
  return runtime;
}

const order: ClientOrder = JSON.parse(process.argv[2] ?? '{}');
const log = openLog(order);
if (order.forging) await forgeEnds(order);
const runtimes = order.clients.map((who) => startClient(order, log, who));
await Promise.all(runtimes.map((runtime) => runtime.ready()));
process.stdout.write('ready\n');
process.stdin.resume();
process.stdin.on('end', () => {
  void Promise.all(runtimes.map((runtime) => runtime.close())).then(() => process.exit(0));
});
