/** Runs the packed clients of each release against the present relay, as docs/compatibility.md promises. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type * as Admin from '../../src/clients/admin/index.ts';
import type * as Caller from '../../src/clients/caller/index.ts';
import type * as Host from '../../src/clients/host/index.ts';
import type * as Live from '../../src/clients/live/index.ts';
import type * as Runtime from '../../src/clients/runtime/index.ts';
import type * as Site from '../../src/clients/site/index.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';

const ROOT = join(import.meta.dirname, '../..');
const PACKED = join(import.meta.dirname, 'clients');
const VERSIONS = readdirSync(PACKED).flatMap((name) => /^callboard-client-(.+)\.tgz$/.exec(name)?.[1] ?? []);

// Below the repository, so that the libraries find the packages beside them (graphql-sse).
mkdirSync(join(ROOT, '.cache'), { recursive: true });
const top = mkdtempSync(join(ROOT, '.cache/older-'));
afterAll(() => rmSync(top, { recursive: true, force: true }));

/** The libraries of a version, with the types of the present ones: this test uses what they all have. */
type Clients = {
  readonly runtime: typeof Runtime;
  readonly caller: typeof Caller;
  readonly host: typeof Host;
  readonly site: typeof Site;
  readonly admin: typeof Admin;
  readonly live: typeof Live;
};

async function unpacked(version: string): Promise<Clients> {
  const folder = join(top, version);
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['-xzf', join(PACKED, `callboard-client-${version}.tgz`), '-C', folder, '--strip-components=1']);
  const names = ['runtime', 'caller', 'host', 'site', 'admin', 'live'];
  const entries = names.map(async (name) => [name, await import(join(folder, `clients/${name}/index.js`))] as const);
  return Object.fromEntries(await Promise.all(entries)) as Clients;
}

async function connected(relay: RealRelay, { runtime }: Clients, clientId: string, ...scopes: string[]) {
  const token = await relay.token('alice', 'connect', ...scopes);
  const client = runtime.createRuntime({ url: relay.link, token, clientId, clientType: 'console', onStatus: () => {} });
  const schema = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } } as const;
  client.handle('notes.add', { schema }, async ({ text }, { progress, signal }) => {
    progress({ done: 1 });
    if (text === 'never')
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    return { added: text };
  });
  client.connect();
  await client.ready();
  return client;
}

const target = { userId: 'alice', clientId: 'desk', action: 'notes.add' };

test('the packed clients are found, and docs/compatibility.md has a row for each', () => {
  expect(VERSIONS.length).toBeGreaterThan(0);
  const page = readFileSync(join(ROOT, 'docs/compatibility.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (\d+\.\d+\.\d+) +\|.*$/gm)];
  expect(rows.map(([, version]) => version).toSorted()).toEqual(VERSIONS.toSorted());
  for (const [row] of rows) expect(row.match(/\| yes /g)).toHaveLength(4);
});

describe.each(VERSIONS)('clients %s', (version) => {
  test('connect, run a command, report progress, and refuse what does not match', async () => {
    const clients = await unpacked(version);
    await using relay = await startRealRelay();
    await using _client = await connected(relay, clients, 'desk');
    const token = await relay.token('alice', 'invoke');
    const seen: unknown[] = [];
    await using caller = clients.caller.createHttpCaller({ url: relay.url, token });
    const onProgress: Caller.InvokeOptions['onProgress'] = ({ value }) => void seen.push(value);
    const answer = await caller.invoke(target, { text: 'milk' }, { onProgress });
    expect(answer).toMatchObject({ outcome: 'completed', result: { added: 'milk' } });
    expect(seen).toEqual([{ done: 1 }]);
    expect(await caller.invoke(target, { text: 1 })).toMatchObject({ error: { code: 'arguments_invalid' } });
  });

  test('call over HTTP and over a link, await, cancel, and are refused by name', async () => {
    const clients = await unpacked(version);
    await using relay = await startRealRelay();
    await using _client = await connected(relay, clients, 'desk');
    const token = await relay.token('alice', 'invoke');
    const { createHttpCaller, createLinkCaller, CallerError } = clients.caller;
    for (const caller of [createHttpCaller({ url: relay.url, token }), createLinkCaller({ url: relay.link, token })]) {
      await using own = caller;
      const { handle } = await own.invoke(target, { text: 'never' }, { waitFor: 'acknowledged' });
      await own.cancel(handle, 'enough');
      expect(await own.await(handle)).toMatchObject({ outcome: 'cancelled' });
      const away = own.invoke({ ...target, clientId: 'away' }, { text: 'a' });
      const error = await away.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(CallerError);
      expect(error).toMatchObject({ code: 'not_connected' });
    }
  });

  test('publish events of a site, and view them', async () => {
    const clients = await unpacked(version);
    await using relay = await startRealRelay();
    await using client = await connected(relay, clients, 'desk', 'host');
    await client.site({ siteId: 'board', eventNames: ['changed'] }).registered;
    const token = await relay.token('alice', 'host', 'invoke');
    const opened = await fetch(`${relay.url}/sites/board/sessions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{}',
    });
    const { session_id: sessionId, token: grant } = (await opened.json()) as { session_id: string; token: string };
    const viewer = new clients.site.CooperativeSiteBrowserClient({ url: relay.url, sessionId, token: grant });
    const publisher = clients.host.createSiteEventPublisher({ runtime: client, siteId: 'board' });
    const stop = new AbortController();
    const onStatus = (status: string): void => {
      if (status === 'live') void publisher.publish({ name: 'changed', data: { id: 7 } });
    };
    for await (const event of viewer.subscribe({ names: ['changed'], onStatus, signal: stop.signal })) {
      expect(event).toMatchObject({ type: 'event', name: 'changed' });
      break;
    }
    stop.abort();
  });

  test('read as an administrator, and follow what is connected', async () => {
    const clients = await unpacked(version);
    await using relay = await startRealRelay();
    await using client = await connected(relay, clients, 'desk');
    const options = { url: relay.url, token: relay.admin };
    const admin = clients.admin.createAdmin(options);
    expect((await admin.connections()).nodes.map(({ clientId }) => clientId)).toEqual(['desk']);
    expect((await admin.delivery().summary()).mode).toBe('DIRECT');
    const live = clients.live.createLive(options);
    const stop = new AbortController();
    const seen: string[] = [];
    await live.connections({
      signal: stop.signal,
      onChange({ connections }) {
        seen.push(connections.map(({ status }) => status).join());
        if (seen.length === 1) void client.close();
        if (connections.every(({ status }) => status !== 'CONNECTED')) stop.abort();
      },
    });
    expect([seen[0], seen.at(-1)]).toEqual(['CONNECTED', 'DISCONNECTED']);
  });
});
