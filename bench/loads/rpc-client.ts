/** Answers the calls of the call suites: returns the params of each call, over one of several interfaces. */
import { connect as connectNats } from '@nats-io/transport-node';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import type { Started } from '../lib/child.ts';
import { ACTION, CLIENT_IDS, clientIds, corked, END, openSocket, splitFrame, splitLine, type End } from '../lib/rpc.ts';

export async function start(given: unknown): Promise<Started> {
  const end = END.parse(given);
  await OPENERS[end.kind](end);
  return {};
}

const OPENERS: Readonly<Record<End['kind'], (end: End) => Promise<unknown>>> = {
  echo: async () => null,
  async ws({ port }) {
    const socket = await openSocket(`ws://127.0.0.1:${port}/client`);
    socket.on('message', (data: Buffer) => {
      const { id, params } = JSON.parse(data.toString()) as { id: string; params: unknown };
      socket.send(JSON.stringify({ id, result: { ok: params } }));
    });
  },
  async lines({ port }) {
    const socket = await openSocket(`ws://127.0.0.1:${port}/client`);
    const send = corked(socket);
    socket.on('message', (data: Buffer) => {
      const [id, params] = splitLine(data.toString());
      send(`${id}|${JSON.stringify({ ok: JSON.parse(params) })}`);
    });
  },
  async 'socket.io'({ port }) {
    const socket = io(`http://127.0.0.1:${port}`, { transports: ['websocket'] });
    socket.on('rpc', (params: unknown, done: (result: unknown) => void) => done({ ok: params }));
    await new Promise((done) => socket.on('connect', () => done(null)));
    await socket.emitWithAck('register');
  },
  async nats({ port }) {
    const nats = await connectNats({ port });
    nats.subscribe('rpc.c0', {
      callback: (_, message) => void message.respond(JSON.stringify({ ok: message.json() })),
    });
    await nats.flush();
  },
  bare: ({ port, token, clients = CLIENT_IDS.length }) =>
    Promise.all(clientIds(clients).map((id) => bare(`ws://127.0.0.1:${port}/connect`, token, id))),
  library: ({ port, token }) =>
    Promise.all(CLIENT_IDS.map((id) => library(`ws://127.0.0.1:${port}/connect`, token, id))),
};

async function bare(url: string, token: string, clientId: string): Promise<void> {
  const socket = await openSocket(url, 'callboard.v1');
  const send = corked(socket);
  const welcome = Promise.withResolvers<void>();
  socket.on('message', (data: Buffer) => {
    const [header, params] = splitFrame(data.toString());
    const { type, command_id } = header as { type: string; command_id: string };
    if (type === 'welcome') welcome.resolve();
    else if (type === 'ping') send('{"type":"pong"}');
    else if (type === 'command')
      send(`{"type":"result","command_id":"${command_id}"}\n${JSON.stringify({ ok: JSON.parse(params) })}`);
  });
  const hello = { type: 'hello', token, client_id: clientId, instance_id: `i-${clientId}`, client_type: 'console' };
  send(`${JSON.stringify(hello)}\n{"actions":[{"name":"${ACTION}"}]}`);
  await welcome.promise;
}

/** A WebSocket of the package `ws`. Node's own WebSocket would limit the measurement. */
export class PlainSocket extends WebSocket {
  constructor(url: string, protocols: string) {
    super(url, protocols, { perMessageDeflate: false });
  }
}

async function library(url: string, token: string, clientId: string): Promise<void> {
  const runtime = createRuntime({ url, token, clientId, clientType: 'console', WebSocket: PlainSocket });
  runtime.handle(ACTION, {}, (params) => ({ ok: params }));
  runtime.connect();
  await runtime.ready();
}
