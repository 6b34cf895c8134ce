/**
 * Tests the contexts of the command line (saved relays with their tokens), and that a token goes neither into output
 * nor to another relay. no-token.test.ts tests what processes and logs show.
 */
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { ownFolder } from '../../kit/folder.ts';
import { operatorOf } from './kit/operator.ts';

const TOKEN = 'planted-token-of-contexts';
let relay: RealRelay;
beforeAll(async () => {
  relay = await startRealRelay();
});
afterAll(() => relay[Symbol.asyncDispose]());

/** Returns a function that runs commands with a contexts file that no other test uses. */
function withContexts() {
  const folder = ownFolder();
  const file = join(folder, 'callboard', 'contexts.json');
  return { run: operatorOf({ XDG_CONFIG_HOME: folder }), file, folder };
}

describe('contexts', () => {
  it('are kept in a file of the owner alone, and can be listed, changed and removed', async () => {
    const { run, file } = withContexts();
    const none = await run(['context', 'ls', '-o', 'json']);
    expect([none.code, JSON.parse(none.out)]).toMatchObject([0, { items: [], next_cursor: null }]);
    await run(['context', 'add', 'prod', 'https://relay.example', '--token-command', 'pass show relay']);
    await run(['context', 'add', 'test', 'http://127.0.0.1:1', '--token-file', '/run/token']);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const rows = (await run(['context', 'ls', '-o', 'jsonl'])).out.trimEnd().split('\n');
    expect(rows.map((row) => JSON.parse(row))).toEqual([
      { name: 'prod', current: true, url: 'https://relay.example', token_from: 'command' },
      { name: 'test', current: false, url: 'http://127.0.0.1:1', token_from: 'file /run/token' },
    ]);
    await run(['context', 'use', 'test']);
    expect((await run(['context', 'show', '-o', 'ids'])).out).toBe('test\n');
    expect(await run(['context', 'previous'])).toMatchObject({ code: 0, err: 'The context is prod.\n' });
    expect(await run(['context', 'previous'])).toMatchObject({ code: 0, err: 'The context is test.\n' });
    expect(await run(['context', 'rm', 'test'])).toMatchObject({ code: 0 });
    expect(await run(['context', 'show'])).toMatchObject({ code: 2 });
    expect(await run(['context', 'use', 'test'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('no context'),
    });
  });

  it('refuse what is no relay, no name, or two sources of a token', async () => {
    const { run } = withContexts();
    for (const argv of [
      ['prod', 'ftp://relay'],
      ['prod', 'https://user:secret@relay.example'],
      ['a b', 'https://relay.example'],
      ['prod', 'https://relay.example', '--token-file', 'x', '--token-command', 'y'],
      ['prod', 'https://relay.example', '--store-token'],
    ])
      expect(await run(['context', 'add', ...argv]), argv.join(' ')).toMatchObject({ code: 2, out: '' });
  });

  it('name the relay and its token for every other command', async () => {
    const { run, folder } = withContexts();
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, `${relay.admin}\n`);
    await run(['context', 'add', 'away', 'http://127.0.0.1:1']);
    await run(['context', 'add', 'here', relay.url, '--token-file', tokenFile]);
    expect(await run(['users', 'ls'])).toMatchObject({ code: 4, err: expect.stringContaining('no token') });
    expect(await run(['users', 'ls', '--context', 'here'])).toMatchObject({ code: 0 });
    expect(await run(['users', 'ls'], { env: { CALLBOARD_CONTEXT: 'here' } })).toMatchObject({ code: 0 });
    expect(await run(['users', 'ls', '--context', 'none'])).toMatchObject({ code: 2 });
    expect(await run(['users', 'ls', '--context', 'here', '--url', relay.url])).toMatchObject({ code: 2 });
    await run(['context', 'use', 'here']);
    expect(await run(['users', 'ls'])).toMatchObject({ code: 0 });
  });

  it('that are damaged are named, and never overwritten', async () => {
    const { run, file } = withContexts();
    await run(['context', 'add', 'prod', 'https://relay.example']);
    writeFileSync(file, '{"current":1}');
    expect(await run(['context', 'use', 'prod'])).toMatchObject({ code: 2, err: expect.stringContaining(file) });
    expect(readFileSync(file, 'utf8')).toBe('{"current":1}');
  });
});

describe('the token', () => {
  it('is stored only if asked, is never shown, and not used from a file that others may read', async () => {
    const { run, file } = withContexts();
    const env = { CALLBOARD_TOKEN: relay.admin };
    await run(['context', 'add', 'here', relay.url], { env });
    expect(readFileSync(file, 'utf8')).not.toContain(relay.admin);
    await run(['context', 'add', 'here', relay.url, '--store-token'], { env });
    expect(readFileSync(file, 'utf8')).toContain(relay.admin);
    for (const argv of [['context', 'ls', '-o', 'json'], ['context', 'show'], ['doctor'], ['users', 'ls']]) {
      const { code, out, err } = await run(argv);
      expect([code, (out + err).includes(relay.admin)], argv.join(' ')).toEqual([0, false]);
    }
    chmodSync(file, 0o644);
    expect(await run(['users', 'ls'])).toMatchObject({ code: 2, err: expect.stringContaining('chmod 600') });
  });

  it('of a context goes to the relay of that context only', async () => {
    const asked: IncomingMessage[] = [];
    const other = createServer((request, response) => {
      asked.push(request);
      response.writeHead(401, { 'content-type': 'application/problem+json' });
      response.end('{"code":"unauthenticated","detail":"no"}');
    }).listen(0, '127.0.0.1');
    await new Promise((done) => other.once('listening', done));
    const elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const { run } = withContexts();
    await run(['context', 'add', 'here', relay.url, '--store-token'], { env: { CALLBOARD_TOKEN: TOKEN } });
    expect(await run(['users', 'ls', '--url', elsewhere])).toMatchObject({ code: 4 });
    expect(await run(['users', 'ls'], { env: { CALLBOARD_URL: elsewhere } })).toMatchObject({ code: 4 });
    expect(asked.map(({ headers }) => headers.authorization)).toEqual([]);
    await new Promise((done) => other.close(done));
  });

  it('of a failing command is named without what the command printed', async () => {
    const { run } = withContexts();
    const argv = ['users', 'ls', '--url', relay.url, '--token-command', `echo ${TOKEN}x >&2; echo ${TOKEN}; exit 3`];
    const { code, err } = await run([...argv, '-o', 'json']);
    expect([code, JSON.parse(err)]).toMatchObject([
      4,
      { code: 'unauthenticated', detail: 'The token command ended with 3.' },
    ]);
  });
});
