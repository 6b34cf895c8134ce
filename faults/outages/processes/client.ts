/**
 * Runs a process of honest clients, which run each received command once and log this on disk. Its only argument is a
 * ClientOrder as JSON. The process prints `ready` when all links are up, and ends when its standard input ends.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Call, createRuntime, type Params, type Runtime } from '../../../src/clients/runtime/index.ts';
import { signToken } from '../../../src/http/tokens.ts';
import { parseDown } from '../../../src/protocol/frame-codec.ts';
import { ACTIONS, canaryOf, type Logged } from '../log/events.ts';
import { type FaultLog, openLog, parseLog } from '../log/log.ts';

// Forged reports: instances report the ends of commands that they never received. Relays must refuse these reports.

type Who = ClientOrder['clients'][number];
type Begun = Extract<Logged, { event: 'run-begin' }>;

/** The timeout for the relay to welcome a forger's link, in milliseconds. */
const ANSWER_MS = 3_000;
/** How long a forger stays connected, in milliseconds. In this time the relay handles its frames. */
const STAY_MS = 300;
/** How long a forger's token is valid, in seconds. It is used at once. */
const TOKEN_SECONDS = 3_600;

/**
 * Lets instances that never received the unfinished commands of the previous boot report them as completed, each over
 * its own link. No honest client does this. The run thereby checks that a relay accepts an end only from the instance
 * to which the command is bound.
 */
async function forgeEnds(order: ClientOrder): Promise<void> {
  const begun = begunBefore(order);
  await Promise.all(
    order.clients.map((who) =>
      forge(
        order,
        who,
        begun.filter(({ user, client }) => user === who.user && client === who.client),
      ),
    ),
  );
}

function begunBefore({ folder, proc, boot }: ClientOrder): readonly Begun[] {
  const name = `${proc}.${Number(boot) - 1}.ndjson`;
  const { events } = parseLog(readFileSync(join(folder, name), 'utf8'), name);
  const ended = new Set(events.flatMap((event) => (event.event === 'run-end' ? [event.command] : [])));
  return events.filter((event) => event.event === 'run-begin').filter(({ command }) => !ended.has(command));
}

async function forge({ link, secret }: ClientOrder, { user, client }: Who, begun: readonly Begun[]): Promise<void> {
  if (begun.length === 0) return;
  const instance = `forger-${Math.random().toString(36).slice(2)}`;
  const token = await signToken({
    secret,
    user,
    scopes: ['connect'],
    ttlSeconds: TOKEN_SECONDS,
    now: Date.now(),
  });
  const socket = new WebSocket(link, 'callboard.v1');
  const wait = (name: string): Promise<void> =>
    new Promise((done) => {
      socket.addEventListener(name, () => done(), { once: true });
      setTimeout(done, ANSWER_MS).unref();
    });
  await wait('open');
  const ids = { client_id: client, instance_id: instance, client_type: 'console' };
  const welcomed = wait('message');
  socket.send(JSON.stringify({ type: 'hello', token, ...ids }));
  await welcomed;
  for (const key of begun) {
    const result = JSON.stringify({ canary: canaryOf(key), by: instance });
    socket.send(`${JSON.stringify({ type: 'result', command_id: key.command })}\n${result}`);
  }
  await new Promise((done) => setTimeout(done, STAY_MS));
  socket.close();
}

/** The options with which a client process of a fault run is started. */
type ClientOrder = {
  readonly proc: string;
  readonly boot: string;
  readonly folder: string;
  /** The URL for links: `ws://…/connect`. */
  readonly link: string;
  readonly secret: string;
  readonly clients: readonly { readonly user: string; readonly client: string }[];
  /** Whether other instances first report the unfinished commands of the previous boot. */
  readonly forging: boolean;
  /** Whether the log entry of each run is synced to disk before its handler begins, which takes milliseconds. */
  readonly syncs: boolean;
};

/** How long tokens are valid, in seconds. It is longer than any run. */
const DAY_SECONDS = 86_400;
/**
 * The fraction of the usual backoff that a client without a link waits, so that runs need not wait for long backoffs.
 */
const RETRY_SHARE = 0.1;

type WorkParts = {
  readonly who: ClientOrder['clients'][number];
  readonly syncs: boolean;
  readonly instance: () => string;
};

function work({ write, record }: FaultLog, { who, syncs, instance }: WorkParts) {
  const note = syncs ? record : write;
  return async ({ canary, workMs, filler }: Params, call: Call): Promise<unknown> => {
    const key = { ...who, command: call.commandId, instance: instance() };
    const leftMs = call.remainingMs();
    note({ event: 'run-begin', ...key, canary: typeof canary === 'string' ? canary : null, leftMs });
    if (typeof workMs === 'number' && workMs > 0) await new Promise((done) => setTimeout(done, workMs));
    note({ event: 'run-end', ...key });
    return { canary, by: key.instance, filler };
  };
}

/**
 * Returns a class of sockets that reports each command which arrives while the runtime still uses the socket. A command
 * that arrives later is never handled, so the client may truthfully say that it never arrived.
 */
function socketThatReports(arrived: (commandId: string) => void): typeof WebSocket {
  return class extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      // The runtime adds its listener right after this constructor. So the runtime's listener is called first, and
      // decides whether to give up the socket.
      queueMicrotask(() =>
        this.addEventListener('message', ({ data }) => {
          const frame = typeof data === 'string' ? parseDown(data) : null;
          if (this.readyState !== WebSocket.OPEN || frame?.type !== 'command') return;
          arrived(frame.command_id);
        }),
      );
    }
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
    WebSocket: socketThatReports((command) =>
      log.write({ event: 'arrival', ...who, command, instance: runtime.instanceId }),
    ),
    random: () => Math.random() * RETRY_SHARE,
    onStatus: ({ state }) => {
      if (state !== 'connected' && state !== 'disconnected') return;
      log.write({ event: 'link', ...who, instance: runtime.instanceId, up: state === 'connected' });
    },
  });
  const handler = work(log, { who, syncs: order.syncs, instance: () => runtime.instanceId });
  for (const action of ACTIONS) runtime.handle(action, {}, handler);
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
