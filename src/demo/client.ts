/** One client in a process of its own, started by the demo with `fork`. Everything it needs to know comes as a message. */
import { createRuntime, type Runtime } from '../clients/runtime/index.ts';
import { memberOf, type Habit, type Member } from './cast.ts';
import { flakySocket } from './flaky-socket.ts';
import { readTold, type Said, type Start } from './messages.ts';
import { pauseAt, roughly, type Pause } from './pause.ts';
import type { Place } from './place.ts';
import { roleOf, type Role } from './roles.ts';

const NETWORK_LASTS_MS = 14_000;
const AWAKE_MS = 16_000;
const ASLEEP_MS = 7_000;
const FALLS_AFTER_MS = 45_000;
/** What it takes to let handlers finish before the process ends. */
const LEAVE_MS = 1_500;

type Part = { readonly member: Member; readonly start: Start; readonly role: Role; readonly pause: Pause };

const stopping = new AbortController();
let runtime: Runtime | null = null;
let giveToken: ((token: string) => void)[] = [];

function say(message: Said): void {
  if (process.connected) process.send?.(message);
}

/** Asked before each connection and each renewal. */
function wantToken(): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  giveToken.push(resolve);
  say({ type: 'token_wanted' });
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
      if (status.state === 'connected') say({ type: 'connected' });
      // Replaced by another instance: there is nothing left to do here.
      else if (status.state === 'closed' && status.reason !== 'client_closed') void leave();
    },
  });
  if (role.place) show(role.place, fresh);
  fresh.connect();
  return fresh;
}

/** From now on the relay is told of the place and of each of its changes. */
function show(place: Place, to: Runtime): void {
  const report = (): void => {
    to.reportContexts(place.contexts());
    to.reportWindows(place.windows());
  };
  place.onChange(report);
  report();
}

const HABITS: Readonly<Record<Habit, (part: Part) => Promise<void>>> = {
  deploys: stay,
  drops: stay,
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

async function stay(part: Part): Promise<void> {
  runtime = connect(part);
}

async function leave(): Promise<void> {
  stopping.abort();
  await runtime?.close({ withinMs: LEAVE_MS });
  process.exit(0);
}

function play(start: Start): void {
  const member = memberOf(start.clientId);
  if (!member) throw new RangeError(`${start.clientId} is not in the cast.`);
  const pause = pauseAt(start.tempo);
  const part = { member, start, role: roleOf(start.clientId, pause), pause };
  for (const goesOn of [HABITS[member.habit](part), part.role.life?.(stopping.signal)]) {
    goesOn?.catch((error: unknown) => {
      if (!stopping.signal.aborted) throw error;
    });
  }
}

process.on('message', (message) => {
  const told = readTold(message);
  if (told?.type === 'start') play(told);
  else if (told?.type === 'stop') void leave();
  else if (told?.type === 'token') {
    for (const give of giveToken) give(told.token);
    giveToken = [];
  }
});
// The demo is gone, so there is nobody to play for.
process.on('disconnect', () => void leave());
// A Ctrl-C reaches the whole group: the demo hears it too, and tells each client in its turn.
process.on('SIGINT', () => {});
