/** Makes each mistake of docs/troubleshooting.md, and compares what it says with the page. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createAdmin } from '../../src/clients/admin/index.ts';
import { createHttpCaller, createLinkCaller, type Caller } from '../../src/clients/caller/index.ts';
import { createRuntime, type Runtime, type RuntimeOptions } from '../../src/clients/runtime/index.ts';
import { CooperativeSiteBrowserClient } from '../../src/clients/site/index.ts';
import { signToken } from '../../src/http/tokens.ts';
import { FakeClock } from '../kit/clock.ts';
import { freePort } from '../kit/free-port.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';

const PAGE = readFileSync(new URL('../../docs/troubleshooting.md', import.meta.url), 'utf8');

type Row = { readonly section: string; readonly mistake: string; readonly says: string };

/** Returns the rows of all tables of the page. A section is the anchor that messages name. */
function rowsOf(page: string): readonly Row[] {
  return page.split(/^## /m).flatMap((part) => {
    const section = part.split('\n', 1)[0] ?? '';
    return part
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .slice(2)
      .map((line) => {
        const [, mistake = '', says = ''] = line.split('|').map((cell) => cell.trim());
        return { section, mistake: mistake.replaceAll('`', ''), says: says.replace(/^`|`$/g, '') };
      });
  });
}

let relay: RealRelay;
let nowhere: string;
let user: string;
beforeAll(async () => {
  relay = await startRealRelay();
  nowhere = `127.0.0.1:${await freePort()}`;
  user = await relay.token('demo', 'connect', 'invoke');
});
afterAll(() => relay?.[Symbol.asyncDispose]());

const target = { userId: 'demo', clientId: 'kiosk', action: 'x' };

/** Gives a library what the types of TypeScript refuse, as a program in JavaScript does. */
function untyped<T extends object>(value: T, wrong: object): T {
  return { ...value, ...wrong };
}

function client(wrong: object = {}): Runtime {
  const options: RuntimeOptions = { url: relay.link, token: user, clientId: 'kiosk', clientType: 'console' };
  return createRuntime(untyped(options, wrong));
}

/** Returns the message of what `act` throws or rejects with. */
async function thrownBy(act: () => unknown): Promise<string> {
  try {
    await act();
  } catch (error) {
    return String(error);
  }
  throw new Error('nothing was thrown');
}

/** Calls an action with these wrong arguments. */
function calling(wrong: { readonly target?: object; readonly params?: object; readonly options?: object }) {
  return thrownBy(async () => {
    await using caller = createHttpCaller({ url: relay.url, token: user });
    await caller.invoke(untyped(target, wrong.target ?? {}), wrong.params ?? {}, untyped({}, wrong.options ?? {}));
  });
}

/** Registers an action with this spec and handler. */
function registering(spec: unknown, run: unknown = () => 1, name = 'x'): Promise<string> {
  return thrownBy(async () => {
    await using runtime = client();
    Reflect.apply(runtime.handle, runtime, [name, spec, run]);
  });
}

/** Returns what is printed on the console until `act` is over and something was printed. */
async function printedBy(act: () => Promise<unknown> | unknown): Promise<string> {
  const printed = Promise.withResolvers<void>();
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => printed.resolve());
  try {
    await act();
    await printed.promise;
    return warn.mock.calls.map((words) => words.map(String).join(' ')).join('\n');
  } finally {
    warn.mockRestore();
  }
}

/** Connects a client with these wrong options, and returns what is printed. */
async function connecting(wrong: object): Promise<string> {
  const { exitCode } = process;
  const runtime = client({ WebSocket, ...wrong });
  try {
    return await printedBy(() => runtime.connect());
  } finally {
    await runtime.close();
    process.exitCode = exitCode;
  }
}

/** Runs an action of a client, and returns its error. `spec` and `run` are as for `handle`. */
async function running(spec: object, run: () => unknown, wrong: object = {}): Promise<string> {
  await using runtime = client({ clientId: 'runs', ...wrong });
  runtime.handle('x', spec, run);
  runtime.connect();
  await runtime.ready();
  await using caller = createHttpCaller({ url: relay.url, token: user });
  const answer = await caller.invoke({ ...target, clientId: 'runs' }, {}, { connectWithinMs: 10_000 });
  return 'error' in answer ? `${answer.error.code}: ${answer.error.message}` : answer.outcome;
}

/** Forgets to connect, and returns what is printed. */
async function forgetting(act: (runtime: Runtime) => unknown): Promise<string> {
  const clock = new FakeClock();
  const runtime = client({ clock });
  try {
    return await printedBy(async () => {
      act(runtime);
      await clock.advance(5_000);
    });
  } finally {
    await runtime.close();
  }
}

/** Calls over HTTP or over a link, where something accepts connections and never answers. */
async function silent(open: (address: string, clock: FakeClock) => Caller): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  const accepted = once(server, 'connection');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const clock = new FakeClock();
  await using caller = open(`127.0.0.1:${address.port}`, clock);
  const said = thrownBy(() => caller.invoke(target, {}, { respondWithinMs: 1_000 }));
  const [socket] = await accepted;
  await clock.advance(3_000);
  socket.destroy();
  server.close();
  return await said;
}

const schema = (schema: unknown): Promise<string> => registering({ schema });
const bigint = { size: 2n };

/** What makes each mistake. It returns what the program sees. */
const MISTAKES: Readonly<Record<string, () => Promise<string>>> = {
  "the token's variable is not set": () => thrownBy(() => client({ token: undefined })),
  'the token begins with Bearer': () => thrownBy(() => client({ token: 'Bearer x' })),
  'a client has an http address': () => thrownBy(() => client({ url: 'http://relay.test:4400' })),
  "a client's address has no path": () => thrownBy(() => client({ url: 'wss://relay.test' })),
  'a caller over HTTP has the address of a link': () =>
    thrownBy(() => createHttpCaller({ url: 'ws://relay.test:4400/connect', token: 't' })),
  'an address has a name and a password': () =>
    thrownBy(() => createHttpCaller({ url: 'http://me:secret@relay.test', token: 't' })),
  'clientType is another word': () => thrownBy(() => client({ clientType: 'kiosk' })),
  'a client id has a space': () => thrownBy(() => client({ clientId: 'my kiosk' })),
  'an option is misspelt': () => thrownBy(() => client({ onstatus: () => {} })),
  'approve in a spec, for approval': () => registering({ approve: true }, () => 1, 'door.open'),
  'an effect is misspelt': () => registering({ effects: { readonly: true } }),
  'timeoutMs of a call': () => calling({ options: { timeoutMs: 5_000 } }),
  'idempotencyKey of a call': () => calling({ options: { idempotencyKey: 'k' } }),
  'instanceID of a target': () => calling({ target: { instanceID: 'i' } }),
  'a call names no user': () => calling({ target: { userId: undefined } }),
  'a budget is less than a second': () => calling({ options: { respondWithinMs: 500 } }),
  'a budget is Infinity': () => calling({ options: { connectWithinMs: Infinity } }),
  'close is given NaN': () => thrownBy(() => client().close({ withinMs: NaN })),
  'params are a text': () =>
    thrownBy(() => Reflect.apply(createHttpCaller({ url: relay.url, token: user }).invoke, {}, [target, 'hello'])),
  'params hold a BigInt': () => calling({ params: bigint }),
  'a signal is an AbortController': () => calling({ options: { signal: new AbortController() } }),
  'an action has no spec': () => registering(() => 1),
  'an action has no handler': () => thrownBy(() => Reflect.apply(client().handle, client(), ['x', {}])),
  'an action is registered twice': () =>
    thrownBy(() => {
      const runtime = client();
      runtime.handle('x', {}, () => 1);
      runtime.handle('x', {}, () => 2);
    }),
  'a schema has no keyword': () => schema({ text: 'string' }),
  "a site's profile is misspelt": () =>
    thrownBy(() => client().site(untyped({ siteId: 's' }, { capabilityProfile: { actionInvokation: true } }))),
  'a viewer has no session': () =>
    thrownBy(
      () =>
        new CooperativeSiteBrowserClient(
          untyped({ url: relay.url, token: 't', sessionId: '' }, { sessionId: undefined }),
        ),
    ),
  "an administrator's read has an unknown member": () =>
    thrownBy(() => createAdmin({ url: relay.url, token: relay.admin }).users(untyped({}, { frist: 5 }))),
  'connect() is forgotten': () => forgetting(() => {}),
  'ready() without connect()': () => forgetting((runtime) => void runtime.ready().catch(() => {})),
  'connect() after close()': async () => {
    const runtime = client();
    await runtime.close();
    return printedBy(() => runtime.connect());
  },
  'nothing listens at the port of a link': () => connecting({ url: `ws://${nowhere}/connect` }),
  'nothing listens at the port, over HTTP': () =>
    thrownBy(() =>
      createHttpCaller({ url: `http://${nowhere}`, token: 't' }).invoke(target, {}, { respondWithinMs: 1_000 }),
    ),
  "a link's path is not the relay's": () => connecting({ url: `${relay.link}/elsewhere` }),
  'a page of another origin': async () => {
    vi.stubGlobal('location', new URL('https://app.example/page'));
    try {
      return await connecting({ url: `ws://${nowhere}/connect` });
    } finally {
      vi.unstubAllGlobals();
    }
  },
  'the token function throws': () =>
    connecting({
      token: () => {
        throw new Error('no vault');
      },
    }),
  'the token function gives nothing': () => connecting({ token: () => undefined }),
  'the token is not one of this relay': () => connecting({ token: 'nonsense' }),
  'the token is too old': async () => {
    const { secret } = relay;
    const old = { secret, user: 'demo', scopes: ['connect'], now: Date.now() - 3_600_000, ttlSeconds: 60 };
    return connecting({ token: await signToken(old) });
  },
  "a client has an administrator's token": () => connecting({ token: relay.admin }),
  'a token lacks the scope': async () => connecting({ token: await relay.token('demo', 'invoke') }),
  'two programs have one clientId': async () => {
    const { exitCode } = process;
    await using first = client({ clientId: 'twice' });
    first.connect();
    await first.ready();
    await using second = client({ clientId: 'twice' });
    const said = await printedBy(() => second.connect());
    process.exitCode = exitCode;
    return said;
  },
  'a handler has a bug': async () => {
    let stack = '';
    const bug = (): never => {
      const error = new TypeError('cannot read the paper');
      stack = error.stack ?? '';
      throw error;
    };
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    try {
      expect(await running({}, bug)).toBe('handler_failed: cannot read the paper');
      const [said, error] = warn.mock.calls.find(([text]) => String(text).includes('nothing receives')) ?? [];
      expect(error instanceof Error && error.stack).toBe(stack);
      return String(said);
    } finally {
      warn.mockRestore();
    }
  },
  'a result holds a BigInt': () => running({}, () => bigint),
  'a result holds a Map': () => running({}, () => ({ rows: new Map([[1, 2]]) })),
  'an action with approval, no approve': () => running({ approval: true }, () => 1),
  'params do not match the schema': () => running({ schema: { type: 'object', required: ['text'] } }, () => 1),
  'a relay that does not answer': async () => {
    const http = await silent((host, clock) => createHttpCaller({ url: `http://${host}`, token: 't', clock }));
    return http;
  },
  'the client is not connected': () =>
    thrownBy(async () => {
      await createHttpCaller({ url: relay.url, token: user })
        .invoke({ ...target, clientId: 'nobody' })
        .catch((error: { readonly code: string }) => Promise.reject(new Error(error.code)));
    }),
  'the client has no such action': async () => {
    await using runtime = client({ clientId: 'idle' });
    runtime.connect();
    await runtime.ready();
    await using caller = createHttpCaller({ url: relay.url, token: user });
    const called = caller.invoke({ ...target, clientId: 'idle' }, {}, { connectWithinMs: 10_000 });
    return await called.then(
      (answer) => ('error' in answer ? answer.error.code : answer.outcome),
      (error: { readonly code: string }) => error.code,
    );
  },
};

describe('each mistake of docs/troubleshooting.md', () => {
  const rows = rowsOf(PAGE);

  test('is made here, and there are at least forty', () => {
    expect(rows.map(({ mistake }) => mistake).toSorted()).toEqual(Object.keys(MISTAKES).toSorted());
    expect(rows.length).toBeGreaterThanOrEqual(40);
  });

  test.each(rows)('$mistake: says it', async ({ mistake, says }) => {
    expect(await MISTAKES[mistake]?.()).toContain(says);
  });
});

test('a caller over a link that reaches no relay rejects within its budget, and says that nothing was sent', async () => {
  const clock = new FakeClock();
  await using caller = createLinkCaller({ url: `ws://${nowhere}/connect`, token: 't', clock, onStatus: () => {} });
  const refused = caller.invoke(target, {}, { respondWithinMs: 5_000 });
  const checked = expect(refused).rejects.toMatchObject({ code: 'unreachable', mayHaveRun: false });
  await clock.advance(5_000);
  await checked;
  await expect(refused).rejects.toThrow(`No relay answers at ws://${nowhere}/connect.`);
});
