/** Tests that no byte leaves a relay with a data directory before what it depends on is on the disk. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { attach, openCallboard, type CallboardOptions } from '../../src/callboard.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { systemClock } from '../../src/platform/system.ts';
import { signToken } from '../../src/http/tokens.ts';
import { Disk, copyOf, openDurable, removeFolders } from '../backends/kit/durable.ts';
import { admission } from '../contract/kit/bench.ts';
import { turns } from '../kit/clock.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';

const SECRET = 'a secret of more than thirty-two bytes';

afterAll(removeFolders);

const tokenOfAlice = (): Promise<string> =>
  signToken({
    secret: SECRET,
    user: 'alice',
    scopes: ['connect', 'invoke'],
    ttlSeconds: TOKEN_SECONDS,
    now: Date.now(),
  });

/** A relay that serves requests: its URL, and what ends it. */
type Served = { readonly url: string; readonly close: () => Promise<void> };
type Serve = (options: CallboardOptions) => Promise<Served>;

async function serveAlone(options: CallboardOptions): Promise<Served> {
  const relay = await openCallboard(options);
  return { url: await relay.listen(), close: () => relay.close() };
}

/** Serves the relay below `/relay` in a server whose program answers everything else with "program". */
async function serveAttached(options: CallboardOptions): Promise<Served> {
  const program = createServer((_request, response) => response.end('program'));
  program.listen(0, '127.0.0.1');
  await once(program, 'listening');
  const relay = await attach(program, { ...options, basePath: '/relay' });
  const close = async (): Promise<void> => {
    await relay.close();
    program.closeAllConnections();
    await new Promise((done) => program.close(done));
  };
  return { url: `${relay.url}`, close };
}

/** Opens a relay whose syncs wait for the test, with a client that answers `echo`. */
async function openHeld(serve: Serve = serveAlone) {
  const disk = new Disk();
  const data = await openDurable({ sync: 'always', openFile: disk.open, clock: systemClock });
  const served = await serve({ config: { auth: { secret: SECRET } }, backend: data.backend });
  const { url } = served;
  const token = await tokenOfAlice();
  const runtime = createRuntime({
    ...{ url: `${url.replace('http', 'ws')}/connect`, token, clientId: 'tab', clientType: 'console' },
  });
  const events: string[] = [];
  runtime.handle('echo', { summary: 'Answers' }, (params) => {
    events.push('ran');
    return params;
  });
  runtime.connect();
  await runtime.ready();
  const authorization = `Bearer ${token}`;
  const call = (): Promise<Response> =>
    fetch(`${url}/connections/alice/tab/actions/echo`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: '{"params":{"n":1}}',
    });
  await (await call()).text();
  await turns();
  events.length = 0;
  disk.log = events;
  const close = async (): Promise<void> => {
    disk.held = false;
    disk.finishSyncs();
    await runtime.close();
    await served.close();
  };
  return { disk, events, url, call, close };
}

/** Lets sockets of this process pass on what was written to them. */
async function passOn(): Promise<void> {
  for (let round = 0; round < 30; round++) await turns();
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await turns();
}

describe('a relay with a data directory', () => {
  it.each([
    ['alone', serveAlone],
    ['in the server of another program', serveAttached],
  ])('gives commands and answers away only after their records are on the disk: %s', async (_where, serve) => {
    const { disk, events, call, close } = await openHeld(serve);
    disk.held = true;
    const answered = call().then(async (response) => {
      await response.text();
      events.push('answered');
    });
    await until(() => events.includes('written'));
    await passOn();
    expect(events.filter((event) => event === 'ran' || event === 'answered')).toEqual([]);
    disk.held = false;
    disk.finishSyncs();
    await answered;
    const [ran, done] = [events.indexOf('ran'), events.indexOf('answered')];
    expect(events.slice(0, ran)).toContain('synced');
    // The end of the command was written and synced after the client ran it.
    expect(events.slice(ran, done)).toEqual(expect.arrayContaining(['written', 'synced']));
    await close();
  });

  it('lets nothing pass by: neither a read, nor a refusal, nor what a socket is sent before HTTP', async () => {
    const { disk, events, url, call, close } = await openHeld();
    disk.held = true;
    void call();
    await until(() => events.includes('written'));
    const { port } = new URL(url);
    const requests = [
      'GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n',
      'GET /nowhere HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n',
      'no HTTP\r\n\r\n',
    ];
    const sockets = requests.map((request) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(request));
      socket.on('data', () => events.push('bytes'));
      return socket;
    });
    await until(() => sockets.every(({ bytesWritten }) => bytesWritten > 0));
    await passOn();
    expect(events).not.toContain('bytes');
    disk.held = false;
    disk.finishSyncs();
    await until(() => events.filter((event) => event === 'bytes').length >= requests.length);
    for (const socket of sockets) socket.destroy();
    await close();
  });

  it('holds back only the sockets that it serves, in the server of another program', async () => {
    const { disk, events, url, call, close } = await openHeld(serveAttached);
    disk.held = true;
    void call().catch(() => null);
    await until(() => events.includes('written'));
    const program = new URL('/', url);
    expect(await (await fetch(program)).text()).toBe('program');
    const { hostname, port } = program;
    const socket = connect(Number(port), hostname);
    const texts: string[] = [];
    socket.on('data', (chunk) => texts.push(String(chunk)));
    // The first response is the relay's, which is held back; the second one is the program's, after it.
    for (const path of ['/relay/healthz', '/']) socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
    await passOn();
    expect(texts).toEqual([]);
    disk.held = false;
    disk.finishSyncs();
    await until(() => texts.join('').includes('program'));
    expect(texts.join('')).toMatch(/"status":"ok"[^]*program/);
    socket.destroy();
    await close();
  });
});

describe('a relay that starts on a data directory', () => {
  type Answered = { readonly data: { readonly server: { readonly durability: unknown } } };
  const DURABILITY = '{ server { durability { kind sync full away { clean lost } } } }';

  it('tells administrators what it keeps, and says in its readiness if records were missing', async () => {
    const first = await openDurable({ clock: systemClock });
    await first.backend.commands.admit(admission('c1', { connectWithinMs: 60_000 }));
    await turns();
    const root = copyOf(first);
    await first.backend.close();
    // As in a backup.
    writeFileSync(join(root, 'loss'), '');
    const open = async (): Promise<{ readiness: unknown; durability: unknown; ofUser: unknown }> => {
      const config = { auth: { secret: SECRET, adminTokens: ['an-admin-token-of-a-test'] }, dataDir: root };
      await using relay = await openCallboard({ config });
      const url = await relay.listen();
      const ask = async (token: string): Promise<unknown> => {
        const body = JSON.stringify({ query: DURABILITY });
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
        const answer = await (await fetch(`${url}/graphql`, { method: 'POST', headers, body })).json();
        return (answer as Answered).data.server.durability;
      };
      return {
        readiness: await (await fetch(`${url}/readyz`)).json(),
        durability: await ask('an-admin-token-of-a-test'),
        ofUser: await ask(await tokenOfAlice()),
      };
    };
    const kept = { kind: 'DIRECTORY', sync: '100 ms', full: false };
    expect(await open()).toEqual({
      readiness: { status: 'ready', store_lost: true },
      durability: { ...kept, away: { clean: false, lost: true } },
      ofUser: null,
    });
    expect(await open()).toEqual({
      readiness: { status: 'ready' },
      durability: { ...kept, away: { clean: true, lost: false } },
      ofUser: null,
    });
  });
});
