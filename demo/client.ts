/** Runs one client of the demo in its own process. Its configuration arrives as messages of the parent process. */
import { WebSocket } from 'ws';
import {
  createRuntime,
  type Runtime,
  type RuntimeOptions,
  type SocketConstructor,
} from '../src/clients/runtime/index.ts';
import {
  CONSOLE_ACTIONS,
  PHONE_ACTIONS,
  WorkerPool,
  authorizeConsole,
  createHolder,
  kioskActions,
  kioskPlace,
  printerActions,
  renewDesks,
  stillPlace,
  type DemoPlace,
} from './actions.ts';
import { CAST, type CastMember, type Habit } from './cast.ts';
import { joinDemo, type Start } from './part-process.ts';
import { pauseAt, roughly, type Pause } from './pause.ts';

/** The approximate time after which the socket of a client with an unreliable network breaks, in milliseconds. */
const NETWORK_LASTS_MS = 14_000;
/** The approximate time for which a client that sleeps is connected, in milliseconds. */
const AWAKE_MS = 16_000;
/** The approximate time for which a sleeping client is disconnected, in milliseconds. */
const ASLEEP_MS = 7_000;
/** The approximate time after which a client with the habit `falls` exits, in milliseconds. */
const FALLS_AFTER_MS = 45_000;
/** How long running handlers may take before the process exits, in milliseconds. */
const EXIT_MS = 1_500;

type Part = { readonly member: CastMember; readonly start: Start; readonly role: Role; readonly pause: Pause };

const stopping = new AbortController();
let runtime: Runtime | null = null;
let tokenWaiters: ((token: string) => void)[] = [];

/** Requests a token from the demo. Called before each connection and each token renewal. */
function wantToken(): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  tokenWaiters.push(resolve);
  send({ type: 'token_wanted' });
  return promise;
}

function connect({ member, start, role }: Part): Runtime {
  const { clientId, clientType, habit } = member;
  const fresh = createRuntime({
    ...role.can,
    url: start.url,
    token: wantToken,
    clientId,
    clientType,
    ...(habit === 'drops' && { WebSocket: flakySocket(() => roughly(NETWORK_LASTS_MS) / start.tempo) }),
    // Errors are ignored, because some actions fail on purpose; their callers see the errors.
    onError() {},
    onStatus(status) {
      if (status.state === 'connected') send({ type: 'connected' });
      // The relay has closed the link permanently, for example because another instance has replaced this one.
      else if (status.state === 'closed' && status.reason !== 'client_closed') void leave();
    },
  });
  if (role.place) show(role.place, fresh);
  fresh.connect();
  return fresh;
}

/** Reports the contexts and windows of the client to the relay, now and after each change. */
function show(place: DemoPlace, to: Runtime): void {
  const report = (): void => {
    to.reportContexts(place.contexts());
    to.reportWindows(place.windows());
  };
  place.onChange(report);
  report();
}

const HABITS: Readonly<Record<Habit, (part: Part) => Promise<void>>> = {
  deploys: connectOnce,
  drops: connectOnce,
  async sleeps(part) {
    while (!stopping.signal.aborted) {
      runtime = connect(part);
      await part.pause(roughly(AWAKE_MS), stopping.signal);
      await runtime.close();
      await part.pause(roughly(ASLEEP_MS), stopping.signal);
    }
  },
  async falls(part) {
    runtime = connect(part);
    await part.pause(roughly(FALLS_AFTER_MS), stopping.signal);
    process.exit(1);
  },
};

async function connectOnce(part: Part): Promise<void> {
  runtime = connect(part);
}

async function leave(): Promise<void> {
  stopping.abort();
  await runtime?.close({ withinMs: EXIT_MS });
  process.exit(0);
}

function play(start: Start): void {
  const member = CAST.find(({ clientId }) => clientId === start.clientId);
  if (!member) throw new RangeError(`${start.clientId} is not in the cast.`);
  const pause = pauseAt(start.tempo);
  const part = { member, start, role: roleOf(start.clientId, pause), pause };
  for (const task of [HABITS[member.habit](part), part.role.life?.(stopping.signal)]) {
    task?.catch((error: unknown) => {
      if (!stopping.signal.aborted) throw error;
    });
  }
}

const send = joinDemo(
  (message) => {
    if (message.type === 'start') play(message);
    if (message.type !== 'token') return;
    for (const give of tokenWaiters) give(message.token);
    tokenWaiters = [];
  },
  () => void leave(),
);

/**
 * What a client does: its actions and local checks, the contexts and windows that it reports, and its background work.
 */
type Role = {
  readonly can: Pick<RuntimeOptions, 'actions' | 'authorize' | 'approve' | 'metadata'>;
  /** The contexts and windows that the client reports. */
  readonly place?: DemoPlace;
  /** Does the client's background work. When the signal is aborted, rejects with an AbortError. */
  readonly life?: (signal: AbortSignal) => Promise<never>;
};

const ROLES: Readonly<Record<string, (pause: Pause) => Role>> = {
  'ops-console': () => ({
    can: {
      actions: CONSOLE_ACTIONS,
      authorize: authorizeConsole,
      metadata: { room: 'operations', desk: 4 },
    },
    place: stillPlace([
      { contextId: 'shell', status: 'active', ownership: 'user-owned', title: 'operations: shell' },
      { contextId: 'log-watch', status: 'idle', ownership: 'user-owned', title: 'operations: log watch' },
    ]),
  }),
  phone: (pause) => ({
    can: {
      actions: PHONE_ACTIONS,
      approve: createHolder(pause),
      metadata: { model: 'pocket', os: '17.2' },
    },
    place: stillPlace([{ contextId: 'app', status: 'active', ownership: 'user-owned', title: 'Camera and map' }]),
  }),
  kiosk: playKiosk,
  printer: (pause) => ({ can: { actions: printerActions(pause), metadata: { place: 'entrance hall', paper: 'A4' } } }),
};

function playKiosk(pause: Pause): Role {
  const pool = new WorkerPool({ windows: 2, workersInEach: 2 });
  return {
    can: { actions: kioskActions(pause, pool), metadata: { place: 'entrance hall', screen: '1080x1920' } },
    place: kioskPlace(pool),
    life: (signal) => renewDesks(pool, pause, signal),
  };
}

/** Returns the role of a client. Throws RangeError for a client without one. */
function roleOf(clientId: string, pause: Pause): Role {
  const role = Object.hasOwn(ROLES, clientId) ? ROLES[clientId] : undefined;
  if (!role) throw new RangeError(`There is no role for ${clientId}.`);
  return role(pause);
}

/**
 * Creates a WebSocket class that imitates an unreliable network: each socket is terminated without a close frame,
 * `livesMs()` milliseconds after its creation.
 */
function flakySocket(livesMs: () => number): SocketConstructor {
  return class FlakySocket extends WebSocket {
    constructor(url: string, protocols: string) {
      super(url, protocols);
      const timer = setTimeout(() => this.terminate(), livesMs());
      this.once('close', () => clearTimeout(timer));
    }
  };
}
