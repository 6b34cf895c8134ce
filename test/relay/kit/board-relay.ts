/** Starts a relay with a site that a client hosts, for tests of sites. */
import { createMemoryBackend } from '../../../src/backends/memory/backend.ts';
import type { CallboardOptions, Settings } from '../../../src/callboard.ts';
import { createRuntime, type ActionSpec, type Handler, type Runtime } from '../../../src/clients/runtime/index.ts';
import type { Backend } from '../../../src/core/backend.ts';
import { silentLog } from '../../../src/core/ports.ts';
import { createCrypto } from '../../../src/platform/system.ts';
import { openRaw, type RawStream } from '../../graphql/kit/stream.ts';
import { postJson, type Answer } from '../../http/kit/http-relay.ts';
import { FakeClock } from '../../kit/clock.ts';
import { IS_DIRECT } from '../../kit/store.ts';
import { startTestRelay, until, type Requester, type TestRelay } from './test-relay.ts';

export const SITE = '/sites/board';
export const DEFINITION = {
  client_id: 'desk',
  title: 'A board',
  event_names: ['changed'],
  actions: ['add', 'guarded', 'judged', 'leased', 'fails', 'gone'],
  capability_profile: { action_invocation: true, sharing: true },
};

export type Opened = { readonly session_id: string; readonly grant_id: string; readonly token: string };
export type Frame = { readonly event: string; readonly id: string | undefined; readonly data: any };

/**
 * A relay with alice's site `board`, whose host is a real runtime, and a session with one viewer, known as `viewer`.
 */
export type BoardRelay = TestRelay & {
  readonly backend: Backend;
  readonly runtime: Runtime;
  readonly session: Opened;
  put(over?: object, requester?: Requester): Promise<Answer>;
  open(body?: object, requester?: Requester): Promise<Opened>;
  publish(payload: unknown, over?: object, requester?: Requester): Promise<Answer>;
  remove(path: string, requester?: Requester): Promise<Answer>;
  /** Opens the plain event stream. */
  listen(requester: Requester | null, query?: string, sessionId?: string): Promise<RawStream>;
};

export async function startBoardRelay({
  config,
  ...more
}: Partial<Omit<CallboardOptions, 'clock' | 'backend' | 'config'>> & {
  readonly config?: Partial<Settings>;
} = {}): Promise<BoardRelay> {
  const clock = new FakeClock(Date.now());
  const memory = (): Backend =>
    createMemoryBackend({ markSecret: 'x', clock, log: silentLog, sha256: createCrypto('test').sha256 });
  const direct = IS_DIRECT ? { backend: memory() } : {};
  const relay = await startTestRelay(config, { clock, ...direct, ...more });
  const { backend } = relay;
  if (!backend) throw new Error('no backend to reach into');
  const runtime = await hostOf(relay);
  const put: BoardRelay['put'] = async (over = {}, requester = 'alice') =>
    relay.rest(SITE, { ...postJson({ ...DEFINITION, ...over }), method: 'PUT', requester });
  const open: BoardRelay['open'] = async (body = {}, requester = 'alice') =>
    JSON.parse((await relay.post(`${SITE}/sessions`, body, requester)).text);
  await put();
  const session = await open();
  relay.know('viewer', session.token);
  return {
    ...relay,
    ...{ backend, runtime, session, put, open },
    publish: (payload, over = {}, requester = 'alice') => {
      const { clientId: client_id, instanceId: instance_id } = runtime;
      const address = { kind: 'event', stream_suffix: 'sites/board/events', client_id, instance_id };
      return relay.post('/ingest', { ...address, payload, ...over }, requester);
    },
    remove: (path, requester = 'alice') => relay.rest(path, { method: 'DELETE', requester }),
    async listen(requester, query = '', sessionId = session.session_id) {
      const bearer = requester === null ? null : await relay.token(requester);
      const headers = { accept: 'text/event-stream', ...(bearer !== null && { authorization: `Bearer ${bearer}` }) };
      return openRaw(`${relay.url}/site-sessions/${sessionId}/events${query}`, { headers });
    },
    async [Symbol.asyncDispose]() {
      await runtime.close({ withinMs: 0 });
      await relay[Symbol.asyncDispose]();
    },
  };
}

const HANDLERS: readonly (readonly [string, ActionSpec, Handler])[] = [
  [
    'add',
    { schema: { type: 'object', properties: { text: { type: 'string' } } } },
    (params, { site }) => ({ params, site }),
  ],
  ['guarded', { approval: true }, () => 'ran'],
  ['judged', {}, () => 'ran'],
  ['leased', { lease: true }, (_, { signal }) => new Promise((done) => signal.addEventListener('abort', done))],
  ['secret', {}, () => 'ran'],
  [
    'fails',
    {},
    () => {
      throw new Error('no');
    },
  ],
];

async function hostOf(relay: TestRelay): Promise<Runtime> {
  const runtime = createRuntime({
    url: `${relay.linkUrl.replace('http', 'ws')}/connect`,
    token: async () => (await relay.token('alice')) ?? '',
    clientId: 'desk',
    clientType: 'console',
    authorize: ({ action }) => action !== 'judged',
  });
  for (const [name, spec, run] of HANDLERS) runtime.handle(name, spec, run);
  runtime.connect();
  await runtime.ready();
  return runtime;
}

/** Closes the host's link and waits until the relay has noticed. */
export async function disconnectHost({ runtime, backend }: BoardRelay): Promise<void> {
  await runtime.close({ withinMs: 0 });
  const key = { userId: 'alice', clientId: 'desk' };
  await until(async () => (await backend.connections.get([key]))[0]?.disconnectedAt !== null);
}

/** Returns the frames that arrived so far, without comments. */
export function framesOf({ text }: RawStream): Frame[] {
  const whole = text().split('\n\n').slice(0, -1);
  return whole.flatMap((frame) => {
    const fields = frame
      .split('\n')
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]);
    const field = (name: string): string | undefined => fields.find(([key]) => key === name)?.[1];
    const data = field('data');
    return field('event')
      ? [{ event: field('event') ?? '', id: field('id'), data: data ? JSON.parse(data) : null }]
      : [];
  });
}
