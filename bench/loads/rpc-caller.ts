/** Makes the calls of the call suites: keeps a number of calls in flight over one of several interfaces. */
import { randomUUID } from 'node:crypto';
import { connect as connectNats } from '@nats-io/transport-node';
import { io } from 'socket.io-client';
import { createLinkCaller } from '../../src/clients/caller/index.ts';
import type { Started } from '../lib/child.ts';
import { drive, DRIVE } from '../lib/drive.ts';
import {
  ACTION,
  CLIENT_IDS,
  clientIds,
  corked,
  END,
  openSocket,
  PAYLOAD,
  PAYLOAD_TEXT,
  splitFrame,
  splitLine,
  USER,
  type End,
} from '../lib/rpc.ts';
import { PlainSocket } from './rpc-client.ts';

/** Makes one call and resolves with the client's result. */
type Call = () => Promise<unknown>;

export async function start(given: unknown): Promise<Started> {
  const end = END.parse(given);
  const call = await OPENERS[end.kind](end);
  const result = await call();
  const wanted = end.kind === 'echo' ? PAYLOAD_TEXT : JSON.stringify({ ok: PAYLOAD });
  if (JSON.stringify(result) !== wanted)
    throw new Error(`A call came back as ${JSON.stringify(result)?.slice(0, 80)}.`);
  return { acts: { drive: (asked) => drive(call, DRIVE.parse(asked)) } };
}

/** Creates the table of unanswered calls by number. */
function waiting() {
  const open = new Map<number, (result: unknown) => void>();
  let ids = 0;
  return {
    ask(send: (n: number) => void): Promise<unknown> {
      return new Promise((resolve) => {
        open.set(++ids, resolve);
        send(ids);
      });
    },
    answer(n: number, result: unknown): void {
      open.get(n)?.(result);
      open.delete(n);
    },
  };
}

const OPENERS: Readonly<Record<End['kind'], (end: End) => Promise<Call>>> = {
  async echo({ port }) {
    const socket = await openSocket(`ws://127.0.0.1:${port}/caller`);
    const { ask, answer } = waiting();
    socket.on('message', (data: Buffer) => {
      const { n, params } = JSON.parse(data.toString()) as { n: number; params: unknown };
      answer(n, params);
    });
    return () => ask((n) => socket.send(JSON.stringify({ n, params: PAYLOAD })));
  },
  async ws({ port }) {
    const socket = await openSocket(`ws://127.0.0.1:${port}/caller`);
    const { ask, answer } = waiting();
    socket.on('message', (data: Buffer) => {
      const { n, result } = JSON.parse(data.toString()) as { n: number; result: unknown };
      answer(n, result);
    });
    return () => ask((n) => socket.send(JSON.stringify({ n, params: PAYLOAD })));
  },
  async lines({ port }) {
    const socket = await openSocket(`ws://127.0.0.1:${port}/caller`);
    const send = corked(socket);
    const { ask, answer } = waiting();
    socket.on('message', (data: Buffer) => {
      const [n, result] = splitLine(data.toString());
      answer(Number(n), JSON.parse(result));
    });
    return () => ask((n) => send(`${n}|${JSON.stringify(PAYLOAD)}`));
  },
  async 'socket.io'({ port }) {
    const socket = io(`http://127.0.0.1:${port}`, { transports: ['websocket'] });
    await new Promise((done) => socket.on('connect', () => done(null)));
    return () => socket.emitWithAck('call', PAYLOAD);
  },
  async nats({ port }) {
    const nats = await connectNats({ port });
    return async () => (await nats.request('rpc.c0', JSON.stringify(PAYLOAD), { timeout: 5_000 })).json();
  },
  bare: (end) => bare(`ws://127.0.0.1:${end.port}/connect`, end),
  async library({ port, token }) {
    const caller = createLinkCaller({ url: `ws://127.0.0.1:${port}/connect`, token, WebSocket: PlainSocket });
    let turn = 0;
    return async () => {
      const clientId = CLIENT_IDS[turn++ % CLIENT_IDS.length] ?? '';
      const answer = await caller.invoke({ userId: USER, clientId, action: ACTION }, PAYLOAD);
      if (answer.outcome !== 'completed') throw new Error(`A command ended ${answer.outcome}.`);
      return answer.result;
    };
  },
};

/** Starts a caller that writes and parses the relay's frames by hand, as a program in another language would. */
async function bare(
  url: string,
  { token, clients = CLIENT_IDS.length, ownIds = false }: Omit<End, 'kind' | 'port'>,
): Promise<Call> {
  const ids = clientIds(clients);
  const run = randomUUID();
  const socket = await openSocket(url, 'callboard.v1');
  const send = corked(socket);
  const { ask, answer } = waiting();
  const welcome = Promise.withResolvers<void>();
  let fault: Error | null = null;
  socket.on('message', (data: Buffer) => {
    const [header, payload] = splitFrame(data.toString());
    const { type, ref, outcome, message } = header as { type: string; ref: string; outcome?: string; message?: string };
    if (type === 'welcome') welcome.resolve();
    else if (type === 'ping') send('{"type":"pong"}');
    else if (type === 'outcome' && outcome === 'completed') answer(Number(ref), JSON.parse(payload));
    else if (type === 'outcome' || type === 'refused') {
      fault = new Error(`A command was answered with ${outcome ?? message}.`);
      answer(Number(ref), null);
    }
  });
  send(JSON.stringify({ type: 'hello', token }));
  await welcome.promise;
  return async () => {
    const result = await ask((n) => {
      const client = ids[n % ids.length] ?? '';
      const id = ownIds ? `,"command_id":"${run}-${n}"` : '';
      send(
        `{"type":"invoke","ref":"${n}","client_id":"${client}","action":"${ACTION}"${id}}\n${JSON.stringify(PAYLOAD)}`,
      );
    });
    if (fault) throw fault;
    return result;
  };
}
