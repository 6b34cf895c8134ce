/** Holds connected clients and calls them at a steady rate, in a separate process beside the measured relay. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { signToken } from '../../src/http/tokens.ts';
import { serveActs } from '../lib/acts.ts';
import { CONNECT, GONE, GONE_CALL, RATE, type Connecting } from './load.ts';

/**
 * The maximum number of connections that are opened at the same time. The relay's listen backlog then never overflows.
 */
const AT_ONCE = 64;
const TICK_MS = 10;
const ACTIONS = ['door.open', 'note.add', 'page.print', 'photo.take', 'sign.show'];
const HELLO_PAYLOAD = JSON.stringify({ actions: ACTIONS.map((name) => ({ name, summary: `Does ${name}` })) });
/** One call in this many fails. */
const FAULT_EVERY = 20;
/** The number of calls to the client that leaves, which is the number that its page lists. */
const GONE_CALLS = 20;
const COMMAND = z.object({ type: z.string(), command_id: z.string().optional() });

const open: WebSocket[] = [];
let timer: ReturnType<typeof setInterval> | undefined;
let made = 0;
let answered = 0;
let wrong: string | null = null;

serveActs({
  async connect(given) {
    const asked = CONNECT.parse(given);
    await comeAndGo(asked);
    for (let first = 0; first < asked.clients; first += AT_ONCE) {
      const ids = Array.from({ length: Math.min(AT_ONCE, asked.clients - first) }, (_, at) => first + at);
      open.push(...(await Promise.all(ids.map((id) => opened(clientOf(id, asked.perUser), asked)))));
    }
    return open.length;
  },
  rate(given) {
    const { url, token, perSecond, clients, perUser } = RATE.parse(given);
    clearInterval(timer);
    const caller = createHttpCaller({ url, token });
    const began = performance.now();
    let begun = 0;
    const call = async (n: number): Promise<void> => {
      // The step is coprime to the number of clients, so that the calls visit all clients.
      const client = clientOf((n * 7919) % clients, perUser);
      const { outcome } = await caller.invoke({ ...client, action: actionOf(n) }, { n });
      made++;
      if (outcome !== 'completed' && outcome !== 'failed') wrong ??= `a call ended ${outcome}`;
    };
    if (perSecond === 0) return null;
    timer = setInterval(() => {
      const due = Math.floor(((performance.now() - began) / 1000) * perSecond);
      while (begun < due) call(begun++).catch((error: unknown) => void (wrong ??= String(error)));
    }, TICK_MS);
    return null;
  },
  /** Returns the number of ended calls, the number of connected clients, and the first problem. */
  state: () => ({ made, connected: open.filter(({ readyState }) => readyState === WebSocket.OPEN).length, wrong }),
});

type Client = typeof GONE;

function clientOf(id: number, perUser: number): Client {
  return { userId: `user-${Math.floor(id / perUser)}`, clientId: `client-${id}` };
}

const actionOf = (n: number): string => ACTIONS[n % ACTIONS.length] ?? '';

/** Connects the client GONE, calls it, and closes its link. The relay retains its calls and its links. */
async function comeAndGo(asked: Connecting): Promise<void> {
  const { url, token } = asked;
  const caller = createHttpCaller({ url, token });
  const socket = await opened(GONE, asked);
  await caller.invoke({ ...GONE, action: actionOf(0) }, { n: 0 }, { commandId: GONE_CALL });
  for (let n = 1; n < GONE_CALLS; n++) await caller.invoke({ ...GONE, action: actionOf(n) }, { n });
  socket.close();
  await once(socket, 'close');
}

/** Opens a client that answers each command at once. */
async function opened({ userId: user, clientId }: Client, { link, secret }: Connecting): Promise<WebSocket> {
  const token = await signToken({ secret, user, scopes: ['connect'], ttlSeconds: 24 * 3600, now: Date.now() });
  const socket = new WebSocket(link, 'callboard.v1', { perMessageDeflate: false });
  await once(socket, 'open');
  const hello = { type: 'hello', token, client_id: clientId, instance_id: `i-${clientId}`, client_type: 'console' };
  socket.send(`${JSON.stringify(hello)}\n${HELLO_PAYLOAD}`);
  const [first] = await once(socket, 'message');
  if (!String(first).startsWith('{"type":"welcome"')) throw new Error(`The relay said ${String(first).slice(0, 200)}`);
  socket.on('message', (data) => {
    const { type, command_id } = COMMAND.parse(JSON.parse(String(data).split('\n', 1)[0] ?? ''));
    if (type === 'ping') socket.send('{"type":"pong"}');
    else if (type === 'command') socket.send(answerTo(command_id));
  });
  return socket;
}

function answerTo(commandId: string | undefined): string {
  if (++answered % FAULT_EVERY !== 0) return `{"type":"result","command_id":"${commandId}"}\n{"ok":true}`;
  return JSON.stringify({
    ...{ type: 'error', command_id: commandId },
    ...{ code: 'handler_failed', message: 'The paper is out.' },
  });
}
