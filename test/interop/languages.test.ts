/** Tests the example clients and callers in Python and Go, with a real relay. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkClient, type ClaimResult } from '../../src/cli/run/conformance.ts';
import { systemClock } from '../../src/clients/link/platform.ts';
import { type FakeLink, startFakeRelay } from '../kit/fake-relay.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { startTestRelay, type TestRelay } from '../relay/kit/test-relay.ts';

// Starts a program that prints a line of JSON for each event.

export type Event = Readonly<Record<string, unknown>> & { readonly event: string };

export class Program implements AsyncDisposable {
  /** The events that were printed so far. */
  readonly events: Event[] = [];
  readonly #child;
  readonly #ended: Promise<number | null>;
  #taken = 0;
  #errors = '';
  #heard = Promise.withResolvers<void>();

  constructor(command: readonly string[], env: Readonly<Record<string, string>>) {
    const [program = '', ...args] = command;
    this.#child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stderr.on('data', (text) => (this.#errors += String(text)));
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.events.push(JSON.parse(line));
      this.#wake();
    });
    this.#ended = once(this.#child, 'close').then(() => (this.#wake(), this.#child.exitCode));
  }

  /**
   * Resolves with the next event of this name after the one that was taken last. Rejects if the program ends without
   * it.
   */
  async next(name: string): Promise<Event> {
    for (;;) {
      const index = this.events.findIndex(({ event }, i) => i >= this.#taken && event === name);
      const found = this.events[index];
      if (found) {
        this.#taken = index + 1;
        return found;
      }
      if (this.#child.exitCode !== null) throw new Error(`ended without ${name}: ${this.said}`);
      await this.#heard.promise;
    }
  }

  /** Asks the program to end, as a service manager does. */
  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  /** Resolves with the exit code of the program. */
  ended(): Promise<number | null> {
    return this.#ended;
  }

  get said(): string {
    return `${JSON.stringify(this.events)} ${this.#errors}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #wake(): void {
    this.#heard.resolve();
    this.#heard = Promise.withResolvers<void>();
  }
}

// Builds and starts the programs of examples in other languages, and says what is missing for them.

const ROOT = join(import.meta.dirname, '../..');
const EXAMPLES = join(ROOT, 'examples');

type Language = {
  readonly name: string;
  /** The reason why the language's programs cannot run on this machine; null if they can. */
  readonly missing: string | null;
  /** Builds the programs. It must be called once before the other methods. */
  build(): void;
  client(relay: string, token: string, clientId: string): Program;
  call(relay: string, token: string, args: readonly string[]): Program;
};

/**
 * The Python programs to try. Debian installs `websockets` for its own Python, which may not be the first one in PATH.
 */
const pythons = ['python3', '/usr/bin/python3'];
const python = pythons.find((path) => spawnSync(path, ['-c', 'import websockets']).status === 0);

const PYTHON: Language = {
  name: 'Python',
  missing: python === undefined ? 'needs python3 and the package python3-websockets' : null,
  build: () => undefined,
  client: (relay, token, clientId) => runPython(['lamp.py', clientId], relay, token),
  call: (relay, token, args) => runPython(['call.py', ...args], relay, token),
};

function runPython([file = '', ...args]: readonly string[], relay: string, token: string): Program {
  // `-B` keeps Python from writing a folder for bytecode beside the sources.
  return new Program([python ?? '', '-B', join(EXAMPLES, 'python', file), ...args], { RELAY: relay, TOKEN: token });
}

/** The folder in which Debian's packages install the sources of Go libraries. Go modules would need the network. */
const GO_PATH = '/usr/share/gocode';
const GO_PROGRAM = join(ROOT, '.cache/go/callboard-example');
const hasGo =
  spawnSync('go', ['version']).status === 0 && existsSync(join(GO_PATH, 'src/github.com/gorilla/websocket'));

const GO: Language = {
  name: 'Go',
  missing: hasGo ? null : 'needs go and the package golang-github-gorilla-websocket-dev',
  build() {
    const cache = join(ROOT, '.cache/go/build');
    mkdirSync(cache, { recursive: true });
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: GO_PATH, GOCACHE: cache, GOFLAGS: '' };
    const options = { cwd: join(EXAMPLES, 'go'), env };
    execFileSync('go', ['vet', '.'], options);
    execFileSync('go', ['build', '-o', GO_PROGRAM, '.'], options);
  },
  client: (relay, token, clientId) => new Program([GO_PROGRAM, 'client', clientId], { RELAY: relay, TOKEN: token }),
  call: (relay, token, args) => new Program([GO_PROGRAM, 'call', ...args], { RELAY: relay, TOKEN: token }),
};

const LANGUAGES: readonly Language[] = [PYTHON, GO];

const linkOf = (url: string): string => `${url.replace(/^http/, 'ws')}/connect`;
const ACTION = '/connections/alice/lamp/actions/lamp.set';

async function tokenOf(relay: TestRelay, requester: string): Promise<string> {
  return (await relay.token(requester)) ?? '';
}

describe.each(LANGUAGES)('the example in $name', ({ name, missing, build, client, call }) => {
  // The reason is shown beside the name of each skipped test.
  const runs = test.skipIf(missing !== null);
  const title = (text: string): string => (missing === null ? text : `${text} (not run: ${missing})`);
  beforeAll(() => (missing === null ? build() : undefined));

  const connected = async (relay: TestRelay, url = relay.linkUrl): Promise<Program> => {
    const program = client(linkOf(url), await tokenOf(relay, 'alice:connect'), 'lamp');
    await program.next('connected');
    return program;
  };
  const connection = async (relay: TestRelay): Promise<Record<string, any>> => {
    const members =
      'status lastSeenAt instanceId disconnectCause clientType metadata actions { items { name schema } }';
    return (await relay.data(`{ connection(userId: "alice", clientId: "lamp") { ${members} } }`))['connection'];
  };

  describe('of a client', () => {
    runs(title('says who it is and what it offers'), async () => {
      await using relay = await startTestRelay();
      await using _program = await connected(relay);
      expect(await connection(relay)).toMatchObject({
        ...{ status: 'CONNECTED', clientType: 'CONSOLE', metadata: { language: name.toLowerCase() } },
        actions: {
          items: [{ name: 'lamp.set', schema: { type: 'object', required: ['on'] } }, { name: 'conformance.echo' }],
        },
      });
    });

    runs(title('runs commands, and keeps numbers and texts as they are'), async () => {
      await using relay = await startTestRelay();
      await using program = await connected(relay);
      const note = '{"n":9007199254740993,"text":"a\\nb \\"é\\" 🙂 \\u2028"}';
      const request = { method: 'POST', headers: { 'content-type': 'application/json' } };
      const token = await tokenOf(relay, 'alice');
      const { text } = await relay.ask(ACTION, { ...request, token, body: `{"params":{"on":true,"note":${note}}}` });
      expect(JSON.parse(text)).toMatchObject({ outcome: 'completed', result: { was: false, is: true } });
      expect(text).toContain('9007199254740993');
      expect(JSON.parse(text).result.note.text).toBe('a\nb "é" 🙂 \u2028');
      expect(program.events.map(({ event }) => event)).toEqual(['connected', 'running', 'ended']);
    });

    runs(title('refuses wrong params before they run, and reports a handler that fails'), async () => {
      await using relay = await startTestRelay();
      await using program = await connected(relay);
      const refused = JSON.parse((await relay.post(ACTION, { params: { on: 'yes' } })).text);
      expect(refused).toMatchObject({ outcome: 'failed', execution: 'refused_by_client' });
      expect(refused.error.code).toBe('arguments_invalid');
      expect(program.events.some(({ event }) => event === 'running')).toBe(false);
      const failed = JSON.parse((await relay.post(ACTION, { params: { on: true, fade_ms: 60_001 } })).text);
      expect(failed).toMatchObject({ outcome: 'failed', execution: 'reported_by_client' });
      expect(failed.error).toEqual({ code: 'handler_failed', message: 'the lamp cannot fade that slowly' });
    });

    runs(
      title('runs a command that names its context there, and is not asked for a context that is gone'),
      async () => {
        await using relay = await startTestRelay();
        await using program = await connected(relay);
        const reported = async (): Promise<string | undefined> =>
          (await relay.data('{ contexts(filter: { userId: "alice" }) { nodes { contextId } } }'))['contexts'].nodes[0]
            ?.contextId;
        await expect.poll(reported).toBeDefined();
        const context_id = await reported();
        const ran = JSON.parse((await relay.post(ACTION, { context_id, params: { on: true } })).text);
        expect(ran).toMatchObject({ outcome: 'completed', result: { is: true } });
        const gone = JSON.parse((await relay.post(ACTION, { context_id: 'another', params: { on: true } })).text);
        expect(gone).toMatchObject({ status: 409, code: 'context_gone', by: 'place' });
        expect(program.events.filter(({ event }) => event === 'running')).toHaveLength(1);
      },
    );

    runs(title('reports progress, and stops when it is asked to'), async () => {
      await using relay = await startTestRelay();
      await using _program = await connected(relay);
      const params = { on: true, fade_ms: 50_000 };
      await relay.post(ACTION, { command_id: 'c1', wait_for: 'acknowledged', params });
      const ended = relay.rest('/commands/alice/lamp/c1?within_ms=30000', { requester: 'alice' });
      await relay.post('/commands/alice/lamp/c1/cancel', { reason: 'enough' });
      expect(JSON.parse((await ended).text)).toMatchObject({ outcome: 'cancelled' });
      const history = await relay.rest('/history/command/alice/c1?include_payload=true');
      expect(history.text).toContain('"fading_ms":50000');
    });

    runs(title('answers the heartbeat, and so stays connected'), async () => {
      await using relay = await startTestRelay();
      await using _program = await connected(relay);
      const seen = async (): Promise<number> => Date.parse((await connection(relay))['lastSeenAt']);
      for (let pings = 0; pings < 4; pings++) {
        const before = await seen();
        await relay.clock.advance(20_000);
        await expect.poll(seen).toBeGreaterThan(before);
      }
      expect((await connection(relay))['status']).toBe('CONNECTED');
    });

    runs(title('resumes after a broken link, and delivers the end of what ran on'), async () => {
      await using relay = await startTestRelay();
      await using proxy = await startTcpProxy(relay.linkUrl);
      await using program = await connected(relay, proxy.url);
      const { instanceId } = await connection(relay);
      const answer = relay.post(ACTION, { command_id: 'c1', params: { on: true, fade_ms: 300 } });
      await program.next('running');
      proxy.cut();
      await program.next('ended');
      proxy.mend();
      expect(await program.next('connected')).toMatchObject({ resumed: true });
      expect(JSON.parse((await answer).text)).toMatchObject({ outcome: 'completed', result: { is: true } });
      expect(await connection(relay)).toMatchObject({ status: 'CONNECTED', instanceId });
      expect(program.events.filter(({ event }) => event === 'running').length).toBe(1);
    });

    runs(title('ends when another instance takes over, and does not return'), async () => {
      await using relay = await startTestRelay();
      await using first = await connected(relay);
      await using second = await connected(relay);
      await first.next('replaced');
      expect(await first.next('ended_by_relay')).toMatchObject({ code: 4409, reason: 'replaced' });
      expect(await first.ended()).toBe(1);
      expect(JSON.parse((await relay.post(ACTION, { params: { on: true } })).text)).toMatchObject({
        outcome: 'completed',
      });
      expect(second.events.map(({ event }) => event)).toContain('running');
    });

    runs(title('leaves in order on SIGTERM: what runs ends first'), async () => {
      await using relay = await startTestRelay();
      await using program = await connected(relay);
      const answer = relay.post(ACTION, { params: { on: true, fade_ms: 300 } });
      await program.next('running');
      program.terminate();
      expect(JSON.parse((await answer).text)).toMatchObject({ outcome: 'completed' });
      expect(await program.ended()).toBe(0);
      expect(program.events.at(-1)).toEqual({ event: 'left' });
      expect(await connection(relay)).toMatchObject({ status: 'DISCONNECTED', disconnectCause: 'CLIENT_CLOSED' });
    });
  });

  describe('of a client, with a relay that the test controls', () => {
    const opened = async (relay: Awaited<ReturnType<typeof startFakeRelay>>): Promise<[Program, FakeLink]> => {
      const program = client(relay.url, 'a token', 'lamp');
      return [program, await relay.link()];
    };

    runs(title('runs a repeated command once, and repeats its end'), async () => {
      await using relay = await startFakeRelay();
      const [program, link] = await opened(relay);
      await using _ = program;
      link.command('c1', 'lamp.set', { on: true, fade_ms: 200 });
      await link.next('ack');
      link.command('c1', 'lamp.set', { on: true, fade_ms: 200 });
      await link.next('ack');
      const { payload } = await link.next('result');
      link.command('c1', 'lamp.set', { on: true, fade_ms: 200 });
      expect((await link.next('result')).payload).toEqual(payload);
      link.acknowledge('c1');
      link.command('c1', 'lamp.set', { on: true });
      expect(await link.next('error')).toMatchObject({ command_id: 'c1', code: 'result_unavailable' });
      expect(program.events.filter(({ event }) => event === 'running').length).toBe(1);
      expect(relay.faults).toEqual([]);
    });

    runs(title('refuses an unknown action, and stops at the deadline'), async () => {
      await using relay = await startFakeRelay();
      const [program, link] = await opened(relay);
      await using _ = program;
      link.command('c1', 'lamp.burn', {});
      expect(await link.next('error')).toMatchObject({ command_id: 'c1', code: 'unknown_action' });
      link.command('c2', 'lamp.set', { on: true, fade_ms: 50_000 }, 50);
      expect(await link.next('error')).toMatchObject({ command_id: 'c2', code: 'client_timeout' });
      // These are members and frames of a newer relay, and params that only a relay could add.
      link.sendText('{"type":"news","of":"a newer relay"}');
      link.sendText(
        '{"type":"command","command_id":"c3","action":"lamp.set","remaining_ms":9000,"more":1}\n{"on":true,\n"__cooperative_site_id":"s"}',
      );
      await link.next('result');
      expect(relay.faults).toEqual([]);
    });

    runs(title('keeps an end until it is acknowledged or refused for good'), async () => {
      await using relay = await startFakeRelay();
      const [program, first] = await opened(relay);
      await using _ = program;
      for (const id of ['c1', 'c2', 'c3']) first.command(id, 'lamp.set', { on: true });
      for (let ends = 0; ends < 3; ends++) await first.next('result');
      const refuse = (command_id: string, code: string): void =>
        first.send({ type: 'refused', frame: 'result', command_id, code, message: 'In words.' });
      refuse('c1', 'store_unavailable');
      refuse('c2', 'invalid_argument');
      first.acknowledge('c3');
      await first.untaken('result');
      first.bye('draining', 1);
      const second = await relay.link();
      expect((await second.next('result')).command_id).toBe('c1');
      expect(await second.untaken('result')).toBe(0);
      expect(second.hello.instance_id).toBe(first.hello.instance_id);
    });

    runs(title('drops a link on which it hears nothing, and opens another'), async () => {
      await using relay = await startFakeRelay(() => ({ dead_ms: 200 }));
      const [program, first] = await opened(relay);
      await using _ = program;
      const second = await relay.link();
      expect(second.hello.instance_id).toBe(first.hello.instance_id);
      await first.closed;
    });

    runs(title('says why a link was not opened, and tries again'), async () => {
      await using relay = await startTestRelay();
      await using program = client(`${linkOf(relay.linkUrl)}/elsewhere`, 'a token', 'lamp');
      for (let attempts = 0; attempts < 2; attempts++)
        expect(await program.next('not_opened')).toMatchObject({ reason: expect.stringMatching(/HTTP 4\d\d/) });
    });

    runs(title('does not show a refused token again'), async () => {
      await using relay = await startFakeRelay(() => 'unauthenticated');
      await using program = client(relay.url, 'an old token', 'lamp');
      expect(await program.next('ended_by_relay')).toMatchObject({ code: 4401 });
      expect([await program.ended(), relay.connections]).toEqual([1, 1]);
    });
  });

  runs(
    title('passes `callboard conformance`'),
    // On a busy machine the end of a handler may miss the deadline, which the conformance run remarks on.
    { retry: 2 },
    async () => {
      const results: ClaimResult[] = [];
      let url = '';
      const came = await checkClient({
        ...{ clock: systemClock, port: 0, token: 'a-token', action: 'conformance.echo', leftOut: [] },
        ...{ withinMs: 20_000, connectWithinMs: 60_000, stopped: new AbortController().signal },
        start(changed) {
          const program = client(url, 'a-token', 'lamp');
          let ended = false;
          void program.ended().then(() => ((ended = true), changed()));
          return {
            get ended() {
              return ended;
            },
            leave: () => program.terminate(),
            kill: () => program[Symbol.asyncDispose](),
          };
        },
        onListening: (address) => (url = address),
        onResult: (result) => void results.push(result),
      });
      expect(came).toBe(true);
      expect(results.filter(({ verdict, remark }) => verdict !== 'ok' || remark?.includes('deadline'))).toEqual([]);
    },
  );

  describe('of a caller', () => {
    runs(title('calls, and prints the stages and the outcome'), async () => {
      await using relay = await startTestRelay();
      await using _client = await connected(relay);
      const given = ['--command-id', 'c1', 'lamp', 'lamp.set', '{"on":true}'];
      await using program = call(linkOf(relay.url), await tokenOf(relay, 'alice:invoke'), given);
      expect(await program.next('outcome')).toMatchObject({ outcome: 'completed', result: { is: true } });
      expect(program.events.map(({ event }) => event)).toContain('stage');
      expect(await program.ended()).toBe(0);
    });

    runs(title('says why a call was refused'), async () => {
      await using relay = await startTestRelay();
      await using program = call(linkOf(relay.url), await tokenOf(relay, 'alice:invoke'), ['lamp', 'lamp.set']);
      expect(await program.next('refused')).toMatchObject({ code: 'not_connected' });
      expect(await program.ended()).toBe(1);
    });

    runs(title('awaits a call over another link when its own breaks, and never calls twice'), async () => {
      await using relay = await startTestRelay();
      await using proxy = await startTcpProxy(relay.url);
      const peer = await relay.client({ client_id: 'lamp', payload: { actions: [{ name: 'lamp.set' }] } });
      const token = await tokenOf(relay, 'alice:invoke');
      await using program = call(linkOf(proxy.url), token, ['lamp', 'lamp.set', '{"on":true}']);
      const { command_id } = await peer.next('command');
      await program.next('stage');
      proxy.cut();
      peer.send({ type: 'result', command_id }, 'x'.repeat(1024 * 1024 - 100));
      await peer.next('result_ack');
      proxy.mend();
      const { outcome, result } = await program.next('outcome');
      expect([outcome, String(result).length, await program.ended()]).toEqual(['completed', 1024 * 1024 - 100, 0]);
      expect(peer.seen('command').length).toBe(1);
    });
  });
});
