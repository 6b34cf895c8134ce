/** Tests that no byte leaves a relay with a data directory before what it depends on is on the disk. */
import { connect } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { openCallboard } from '../../src/callboard.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { systemClock } from '../../src/platform/system.ts';
import { signToken } from '../../src/http/tokens.ts';
import { Disk, openDurable, removeFolders } from '../backends/kit/durable.ts';
import { turns } from '../kit/clock.ts';

const SECRET = 'a secret of more than thirty-two bytes';

afterAll(removeFolders);

/** Opens a relay whose syncs wait for the test, with a client that answers `echo`. */
async function openHeld() {
  const disk = new Disk();
  const data = await openDurable({ sync: 'always', openFile: disk.open, clock: systemClock });
  const relay = await openCallboard({ config: { auth: { secret: SECRET } }, backend: data.backend });
  const url = await relay.listen();
  const now = Date.now();
  const token = await signToken({ secret: SECRET, user: 'alice', scopes: ['connect', 'invoke'], ttlSeconds: 600, now });
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
    await relay.close();
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
  it('gives a client its command, and a caller the answer, only after their records are on the disk', async () => {
    const { disk, events, call, close } = await openHeld();
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
});
