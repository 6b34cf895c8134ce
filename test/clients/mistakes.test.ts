/** Makes the mistakes of a first day, each in a program of its own, and reads what it prints and its exit code. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openCallboard, type Callboard } from '../../src/callboard.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { signToken } from '../../src/http/tokens.ts';
import { freePort } from '../kit/free-port.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';

const ADMIN = 'an-administrator-of-the-mistakes';
const SECRET = 'a secret of more than thirty-two bytes';
/** The module that makes programs import the libraries from the sources. */
const HOOKS = join(import.meta.dirname, '../docs/kit/from-source.mjs');

let relay: Callboard;
/** The relay's address without its scheme, and an address at which nothing listens. */
let host: string;
let nowhere: string;
let token: string;
beforeAll(async () => {
  relay = await openRelay(SECRET);
  host = new URL(await relay.listen()).host;
  nowhere = `127.0.0.1:${await freePort()}`;
  token = await tokenOf(SECRET);
});
afterAll(() => relay?.close());

function openRelay(secret: string): Promise<Callboard> {
  return openCallboard({ config: { auth: { secret, adminTokens: [ADMIN] } } });
}

function tokenOf(secret: string, { scope = 'connect', now = Date.now() } = {}): Promise<string> {
  return signToken({ secret, user: 'demo', scopes: [scope], ttlSeconds: TOKEN_SECONDS, now });
}

type Program = AsyncDisposable & {
  /** Resolves with all output once it contains the text, and when the program has ended. */
  shows(text: string): Promise<string>;
  /** Resolves with the exit code when the program has ended by itself. */
  readonly exit: Promise<number | null>;
};

/** Starts a module that uses the libraries, with the token in its environment. */
function start(code: string, TOKEN?: string): Program {
  const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, ...(TOKEN !== undefined && { TOKEN }) };
  const child = spawn(process.execPath, ['--import', HOOKS, '--input-type=module', '-e', code], { env });
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  const heard = new EventTarget();
  let output = '';
  let ended = false;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      heard.dispatchEvent(new Event('output'));
    });
  void exit.then(() => (ended = true));
  return {
    exit,
    async shows(text) {
      while (!output.includes(text) && !ended)
        await Promise.race([exit, new Promise((done) => heard.addEventListener('output', done, { once: true }))]);
      return output;
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await exit;
    },
  };
}

/** A client that listens to no status. `options` and `handle` are JavaScript. */
function client({ options = '', handle = `'notes.add', {}, () => 1` } = {}): string {
  return `import { createRuntime } from 'callboard/runtime';
    const base = { token: process.env.TOKEN, clientId: 'kiosk-1', clientType: 'console' };
    const runtime = createRuntime({ ...base, url: 'ws://${host}/connect', ${options} });
    runtime.handle(${handle});
    runtime.connect();
    runtime.ready().then(() => console.log('up'), () => {});`;
}

/** A client like `client`, which nobody waits for. */
function silent(options = ''): string {
  return client({ options }).replace(/runtime\.ready.*/, '');
}

describe('a wrong option or spec throws at once, and says what is right', () => {
  test.each<readonly [mistake: string, code: () => string, says: string]>([
    [
      'no token',
      () => silent('token: undefined'),
      'token: undefined given, a token or a function that returns one (is its environment variable set?) expected',
    ],
    ['a token with Bearer', () => silent(`token: 'Bearer x'`), 'without "Bearer"'],
    ['an http:// address', () => silent(`url: 'http://${host}'`), 'an address such as ws://HOST/connect expected'],
    [
      'an http:// address of a link',
      () => silent(`url: 'http://${host}/connect'`),
      'an address such as ws://HOST/connect expected',
    ],
    [
      'an https:// address with a base path',
      () => silent(`url: 'https://${host}/base/'`),
      'an address such as wss://HOST/base/connect expected',
    ],
    ['no /connect', () => silent(`url: 'ws://${host}/'`), 'an address such as ws://HOST/connect expected'],
    ['no scheme', () => silent(`url: '${host}/connect'`), 'an address such as ws://127.0.0.1:4400/connect expected'],
    ['an unknown type', () => silent(`clientType: 'kiosk'`), 'one of browser, console, mobile, web expected'],
    ['no client id', () => silent('clientId: undefined'), 'clientId: undefined given'],
    ['a callback that is none', () => silent('onStatus: true'), 'onStatus: true given, a function expected'],
    ['no spec', () => client({ handle: `'x', () => 1` }), 'action x: function given, handle(name, spec, handler)'],
    ['no handler', () => client({ handle: `'x', {}` }), 'action x: undefined given, a function expected'],
    [
      'a schema that is none',
      () => client({ handle: `'x', { schema: { text: 'string' } }, () => 1` }),
      'action x: schema: text is no keyword of JSON Schema',
    ],
    [
      'a function in a schema',
      () => client({ handle: `'x', { schema: { type: 'object', properties: { text: String } } }, () => 1` }),
      'action x: schema: text is no plain JSON',
    ],
  ])('%s', async (_, code, says) => {
    await using program = start(code(), token);
    expect(await program.exit).toBe(1);
    expect(await program.shows('')).toContain(says.replace('HOST', host));
  });
});

describe('a client that is refused for good warns once and exits with 1', () => {
  test.each<readonly [mistake: string, token: () => string | Promise<string>, says: RegExp]>([
    ['a bad token', () => 'nonsense', /refused the token\. Use a new one.* \(The token is not valid\.\)/],
    ['an old token', () => tokenOf(SECRET, { now: Date.now() - 1e9 }), /Use a new one.* \(The token has expired\.\)/],
    ['a token of a relay that was', () => tokenOf(`another ${SECRET}`), /Use a new one.*belong to one relay/],
    ['the token of an administrator', () => ADMIN, /"connect".* \(.*an administrator token names no user\.\)/],
    ['a token without the scope', () => tokenOf(SECRET, { scope: 'host' }), /\(The scope "connect" is required\.\)/],
  ])('%s', async (_, given, says) => {
    await using program = start(silent(), await given());
    expect(await program.exit).toBe(1);
    const lines = (await program.shows('')).trimEnd().split('\n');
    expect(lines).toEqual([expect.stringMatching(/^callboard: client kiosk-1: /)]);
    expect(lines[0]).toMatch(says);
  });

  test('the same clientId twice', async () => {
    await using first = start(client(), token);
    await first.shows('up');
    const base = { url: `ws://${host}/connect`, token, clientId: 'kiosk-1', clientType: 'web' } as const;
    await using second = createRuntime(base);
    second.connect();
    expect(await first.exit).toBe(1);
    expect(await first.shows('')).toContain('Give each its own.');
  });

  test('a relay that returns with other credentials', async () => {
    const before = await openRelay(SECRET);
    const { port, host } = new URL(await before.listen({ port: await freePort() }));
    await using program = start(client({ options: `url: 'ws://${host}/connect'` }), token);
    await program.shows('up');
    await before.close();
    await using after = {
      relay: await openRelay(`another ${SECRET}`),
      [Symbol.asyncDispose]: () => after.relay.close(),
    };
    await after.relay.listen({ port: Number(port) });
    expect(await program.exit).toBe(1);
    expect(await program.shows('')).toContain('belong to one relay');
  });

  test('keeps the exit code that the program set', async () => {
    await using program = start(`process.exitCode = 7;${silent()}`.replace(/(.*;)(import.*)/, '$2$1'), 'nonsense');
    expect(await program.exit).toBe(7);
  });

  test('leaves the exit code to a program that waits for ready()', async () => {
    await using program = start(`${silent()}await runtime.ready().catch(({ reason }) => console.log(reason));`, 'bad');
    expect(await program.exit).toBe(0);
    expect(await program.shows('')).toBe('unauthenticated\n');
  });

  test('prints nothing when the program listens', async () => {
    await using program = start(silent('onStatus: () => {}'), 'nonsense');
    expect(await program.exit).toBe(1);
    expect(await program.shows('')).toBe('');
  });

  test('throws from ready(), with the same advice', async () => {
    await using program = start(`${silent()}await runtime.ready();`, 'nonsense');
    expect(await program.exit).toBe(1);
    const output = await program.shows('');
    expect(output).toContain('LinkClosedError: The link is closed: unauthenticated. The relay refused the token.');
    expect(output).not.toContain('callboard: client');
  });
});

describe('a client that reaches no relay warns of the first attempt, and tries again', () => {
  test.each<readonly [mistake: string, options: () => string, says: () => string]>([
    [
      'a port where nothing listens',
      () => `url: 'ws://${nowhere}/connect'`,
      () => `ws://${nowhere}/connect. Does it run`,
    ],
    [
      'a path that does not exist',
      () => `url: 'ws://${host}/relay/connect'`,
      () => 'are host, port and path right? (docs/troubleshooting.md#connection_lost) It',
    ],
    [
      'a path without /connect',
      () => `url: 'ws://${host}/relay'`,
      () => 'Its path ends in /connect. (docs/troubleshooting.md#connection_lost) It',
    ],
    ['a token function that fails', () => `token: () => Promise.reject(new Error('no vault'))`, () => 'no vault'],
    ['a token function that repeats', () => `token: () => 'nonsense'`, () => 'The relay refused the token'],
  ])('%s', async (_, options, says) => {
    await using program = start(silent(options()), token);
    expect(await program.shows('again.\n')).toMatch(/^callboard: client kiosk-1: .* It tries again\.\n$/);
    expect(await program.shows('')).toContain(says());
  });
});

describe('the other libraries', () => {
  const RELAY = () => `url: 'http://${host}', token: process.env.TOKEN`;
  const caller = (options: string) => `import { createHttpCaller, createLinkCaller } from 'callboard/caller';
    const target = { userId: 'demo', clientId: 'kiosk-1', action: 'a' };
    await ${options}.invoke(target)`;
  const admin = (options: string) => `import { createAdmin } from 'callboard/admin';
    await createAdmin({ ${options} }).users()`;
  const site = (options: string) => `import { CooperativeSiteBrowserClient } from 'callboard/site';
    for await (const event of new CooperativeSiteBrowserClient({ ${options} }).subscribe()) console.log(event)`;
  const host_ = (options: string) => `import { createSiteEventPublisher } from 'callboard/host';
    ${silent(options)}
    await createSiteEventPublisher({ runtime, siteId: 'board' }).publish({ name: 'n' })`;

  test.each<readonly [mistake: string, code: () => string, says: string]>([
    ['a caller without a token', () => caller(`createHttpCaller({ url: 'http://${host}' })`), 'token: undefined given'],
    [
      'a caller with the address of a link',
      () => caller(`createHttpCaller({ url: 'ws://${host}/connect', token: 't' })`),
      'an address such as http://127.0.0.1',
    ],
    ['a caller with a bad token', () => caller(`createHttpCaller({ ${RELAY()} })`), 'The token is not valid.'],
    [
      'a caller over a link with a bad token',
      () => caller(`createLinkCaller({ url: 'ws://${host}/connect', token: 'nonsense' })`),
      'CallerError: The relay refused the token. Use a new one',
    ],
    ['an admin without a token', () => admin(`url: 'http://${host}'`), 'is its environment variable set?'],
    ['an admin with a bad token', () => admin(RELAY()), 'The token is not valid.'],
    ['an admin with a path', () => admin(`url: 'http://${host}/graphql', token: 't'`), 'http://127.0.0.1'],
    ['a viewer without a session', () => site(RELAY()), 'sessionId: undefined given'],
    ['a viewer with a bad token', () => site(`${RELAY()}, sessionId: 's'`), 'The token is not valid.'],
    ['a publisher with a bad token', () => host_(`token: 'nonsense'`), 'HostError: The runtime is not connected'],
  ])('%s ends at once and says why', async (_, code, says) => {
    await using program = start(code(), 'nonsense');
    expect(await program.exit).toBe(1);
    expect(await program.shows('')).toContain(says);
  });

  test.each<readonly [library: string, code: () => string]>([
    ['a caller over a link', () => caller(`createLinkCaller({ url: 'ws://${nowhere}/connect', token: 't' })`)],
    ['a viewer', () => site(`url: 'http://${nowhere}', sessionId: 's', token: 't'`)],
  ])('%s warns when it reaches no relay', async (_, code) => {
    await using program = start(code());
    expect(await program.shows('again.\n')).toMatch(/^callboard: .*No relay answers at .* It tries again\.\n/);
  });

  test('a caller over HTTP and an admin say which relay they do not reach', async () => {
    // Both try for a while.
    await using calls = start(caller(`createHttpCaller({ url: 'http://${nowhere}', token: 't' })`));
    await using reads = start(admin(`url: 'http://${nowhere}', token: 't'`));
    for (const program of [calls, reads]) {
      expect(await program.exit).toBe(1);
      expect(await program.shows('')).toContain(`No relay answers at http://${nowhere}. Does it run`);
    }
  });
});
