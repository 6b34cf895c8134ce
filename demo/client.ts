/** Runs one client in a process that the demo starts with `fork`. Its configuration arrives as messages. */
import { createRuntime, type Runtime } from '../clients/runtime/index.ts';
import { memberOf, type Habit, type CastMember } from './cast.ts';
import { flakySocket } from './flaky-socket.ts';
import { readMessageToClient, type MessageFromClient, type Start } from './messages.ts';
import { pauseAt, roughly, type Pause } from './pause.ts';
import type { DemoPlace } from './place.ts';
import { roleOf, type Role } from './roles.ts';

/** The approximate time after which the socket of a client with an unreliable network breaks, in milliseconds. */
const NETWORK_LASTS_MS = 14_000;
/** The approximate time for which a client that sleeps is connected, in milliseconds. */
const AWAKE_MS = 16_000;
/** The approximate time for which a client that sleeps is disconnected, in milliseconds. */
const ASLEEP_MS = 7_000;
/** The approximate time after which a client whose process falls exits, in milliseconds. */
const FALLS_AFTER_MS = 45_000;
/** How long running handlers may take before the process exits, in milliseconds. */
const EXIT_MS = 1_500;

type Part = { readonly member: CastMember; readonly start: Start; readonly role: Role; readonly pause: Pause };

const stopping = new AbortController();
let runtime: Runtime | null = null;
let tokenWaiters: ((token: string) => void)[] = [];

function send(message: MessageFromClient): void {
  if (process.connected) process.send?.(message);
}

/** Requests a token from the demo. Called before each connection and each renewal. */
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
    onStatus(status) {
      if (status.state === 'connected') send({ type: 'connected' });
      // The relay has closed the link for good, for example because another instance has replaced this one.
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
  const member = memberOf(start.clientId);
  if (!member) throw new RangeError(`${start.clientId} is not in the cast.`);
  const pause = pauseAt(start.tempo);
  const part = { member, start, role: roleOf(start.clientId, pause), pause };
  for (const task of [HABITS[member.habit](part), part.role.life?.(stopping.signal)]) {
    task?.catch((error: unknown) => {
      if (!stopping.signal.aborted) throw error;
    });
  }
}

process.on('message', (message) => {
  const command = readMessageToClient(message);
  if (command?.type === 'start') play(command);
  else if (command?.type === 'stop') void leave();
  else if (command?.type === 'token') {
    for (const give of tokenWaiters) give(command.token);
    tokenWaiters = [];
  }
});
// The demo has ended, so this process ends too.
process.on('disconnect', () => void leave());
// Ctrl-C reaches the whole process group. This process ignores it, because the demo stops each client itself.
process.on('SIGINT', () => {});
