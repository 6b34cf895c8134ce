/** Makes the demo's traffic: plays scenes, which are short stories of calls, in random order. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import {
  CallerError,
  createHttpCaller,
  createLinkCaller,
  type Caller,
  type InvokeOptions,
} from '../src/clients/caller/index.ts';
import type { Log } from '../src/core/ports.ts';
import { pauseAt, roughly, type Pause } from './pause.ts';
import { connectUrl, type Relay } from './relay.ts';

type User = 'alice' | 'bob' | 'carol';

/** What a scene can use. When `signal` is aborted, its calls, waits and requests end. */
type SceneContext = {
  /** Returns the user's caller, over HTTP or over a link. */
  caller(userId: User): Caller;
  /** Sends events of bob's turnstile. Rejects unless each of them is stored, now or earlier. */
  ingest(events: readonly object[]): Promise<void>;
  readonly pause: Pause;
  readonly signal: AbortSignal;
  /** Returns a new unique id that begins with `kind`. */
  id(kind: string): string;
};

/** A short story of related calls. A scene may reject with a refusal of the relay. */
type Scene = (stage: SceneContext) => Promise<unknown>;

/** Scenes, and how often each of them is played in one round. */
type Program = readonly (readonly [times: number, scene: Scene])[];

/** Creates a function that makes scenes with one call to this client. The params are made again for each call. */
function callsOf(userId: User, clientId: string) {
  return (action: string, params?: () => object, options?: InvokeOptions): Scene =>
    ({ caller, signal }) =>
      caller(userId).invoke({ userId, clientId, action }, params?.(), { ...options, signal });
}

function pick<T>(first: T, ...others: readonly T[]): T {
  return others[Math.floor(Math.random() * (others.length + 1))] ?? first;
}

// Alice calls her console and her phone.

const ops = callsOf('alice', 'ops-console');
const phone = callsOf('alice', 'phone');
/** How long a call waits for the phone: at the default pace, longer than the phone sleeps. */
const UNTIL_AWAKE = { connectWithinMs: 30_000 };

const echo: Scene = (stage) =>
  ops('echo', () => ({ text: pick('Anybody there?', 'Good morning.', 'One, two.') }), {
    traceId: stage.id('trace'),
  })(stage);

/** Makes a call, which is parked if the phone sleeps, and cancels it after half a second. */
const changeOfMind: Scene = async ({ caller, pause, signal }) => {
  const parked = await caller('alice').invoke(
    { userId: 'alice', clientId: 'phone', action: 'photo.take' },
    { subject: 'the moon' },
    { ...UNTIL_AWAKE, waitFor: 'admitted' },
  );
  await pause(500, signal);
  return caller('alice').cancel(parked.handle, 'On second thoughts, no.');
};

const ALICE: Program = [
  [2, echo],
  [2, ops('host.load')],
  [1, ops('files.list')],
  // Fails because the handler throws.
  [1, ops('files.list', () => ({ folder: 'attic' }))],
  [1, ops('service.restart', () => ({ service: pick('web', 'mail'), seconds: 0.4 }))],
  // Fails because the console's own policy refuses it.
  [1, ops('service.restart', () => ({ service: 'database' }))],
  // Ends as `outcome_unknown` at its deadline. Its result arrives soon after and is kept as late evidence.
  [1, ops('service.restart', () => ({ service: 'web', seconds: 1.6 }), { respondWithinMs: 1000 })],
  // Is refused because the client does not advertise the action.
  [1, ops('coffee.make', () => ({ strong: true }))],
  // Waits for the phone while it sleeps.
  [2, phone('location.read', () => ({ accuracy: pick('coarse', 'fine') }), UNTIL_AWAKE)],
  // Is refused while the phone sleeps, because the call has no connect budget.
  [1, phone('location.read')],
  // Expires while the phone sleeps.
  [1, phone('location.read', () => ({}), { connectWithinMs: 1000 })],
  // Needs approval, which is sometimes refused.
  [1, phone('photo.take', () => ({ subject: pick('the lake', 'a heron', 'my lunch') }), UNTIL_AWAKE)],
  [1, changeOfMind],
];

// Bob calls his kiosk and his printer, and events are ingested for him.

const kiosk = callsOf('bob', 'kiosk');
const printer = callsOf('bob', 'printer');
/** How long a call waits for its client. In this time the kiosk usually reconnects, and the printer restarts. */
const RECONNECT = { connectWithinMs: 5_000 };

const today = (): string => new Date().toISOString().slice(0, 10);
const note = (): string => pick('Milk is out.', 'Closed on Monday.', 'Who left the umbrella?', 'The lift works again.');

/**
 * Makes three calls with one command id. The command runs once. The second call gets the result of the first one. The
 * third call is refused as a conflict, because its params differ.
 */
const again: Scene = async (stage) => {
  const options = { ...RECONNECT, commandId: stage.id('note') };
  const text = note();
  for (const sent of [text, text, `${text} Really.`]) await kiosk('notes.add', () => ({ text: sent }), options)(stage);
};

const cancelledReport: Scene = async ({ caller, pause, signal }) => {
  const report = { userId: 'bob', clientId: 'kiosk', action: 'report.build' };
  const begun = await caller('bob').invoke(report, { day: today() }, { waitFor: 'acknowledged' });
  await pause(1200, signal);
  return caller('bob').cancel(begun.handle, 'The report is no longer needed.');
};

/** Aborts the wait for a call. The command continues, and is awaited later by its id. */
const hungUp: Scene = async ({ caller, id, pause, signal }) => {
  const handle = { userId: 'bob', clientId: 'kiosk', commandId: id('report') };
  const hangUp = new AbortController();
  const options = { commandId: handle.commandId, signal: AbortSignal.any([hangUp.signal, signal]) };
  const call = caller('bob').invoke({ ...handle, action: 'report.build' }, { day: today() }, options);
  await Promise.allSettled([call, pause(800, signal).then(() => hangUp.abort())]);
  return caller('bob').await(handle, { signal });
};

/** Makes two calls at once. The printer prints one page at a time, so it refuses the other call with `lease_busy`. */
const printTwo: Scene = (stage) =>
  Promise.allSettled(['Page one.', 'Page two.'].map((text) => printer('print.page', () => ({ text }))(stage)));

/** Returns events of the turnstile at the door. The turnstile is not a client: it only sends events. */
function passages(id: (kind: string) => string): readonly object[] {
  const pass = () => ({
    message_id: id('passage'),
    kind: 'event',
    stream_suffix: 'doors/entrance',
    client_id: 'turnstile',
    instance_id: 'turnstile-1',
    payload: { name: pick('visitor.entered', 'visitor.left'), data: { door: pick('north', 'south') } },
  });
  return Array.from({ length: pick(1, 2, 4) }, pass);
}

const visitors: Scene = ({ ingest, id }) => ingest(passages(id));

/**
 * Sends events twice, as a device would that got no answer. The relay counts the duplicates and does not store them.
 */
const visitorsTwice: Scene = async ({ ingest, id, pause, signal }) => {
  const events = passages(id);
  await ingest(events);
  await pause(500, signal);
  return ingest(events);
};

const BOB: Program = [
  [2, kiosk('notes.add', () => ({ text: note() }), RECONNECT)],
  [1, kiosk('notes.list', () => ({ limit: 5 }))],
  // Fails because the kiosk checks the params against the schema that it advertises.
  [1, kiosk('notes.add', () => ({ txt: 'Misspelt.' }))],
  [1, again],
  [2, kiosk('report.build', () => ({ day: today() }), RECONNECT)],
  // Has a result so large that history stores it in the spill store.
  [1, kiosk('report.build', () => ({ day: today(), table: true }), RECONNECT)],
  [1, cancelledReport],
  [1, hungUp],
  [1, printer('print.page', () => ({ text: note() }), RECONNECT)],
  [1, printTwo],
  [1, printer('printer.status')],
  [2, visitors],
  [1, visitorsTwice],
];

const page = callsOf('carol', 'page');

const CAROL: Program = [
  [1, page('page.title')],
  [1, page('page.highlight', () => ({ selector: pick('li', 'h1', 'p') }))],
  [1, page('page.count-words', () => ({ selector: pick('body', 'ul') }))],
];

type TrafficOptions = {
  readonly relay: Relay;
  /** The number of scenes per second. */
  readonly pace: number;
  readonly tempo: number;
  readonly log: Log;
};

/** The most scenes that run at the same time. */
const AT_ONCE = 24;
const PROGRAM: readonly Scene[] = [...ALICE, ...BOB, ...CAROL].flatMap(([times, scene]) => Array(times).fill(scene));

/** Plays the scenes in random order until it is disposed of. After the disposal, no call is pending. */
export function startTraffic(options: TrafficOptions): AsyncDisposable {
  const { pace, tempo, log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const callers = createCallers(options.relay);
  const stage: SceneContext = {
    caller: (userId) => callers[userId],
    ingest: createIngest(options.relay, signal),
    pause: pauseAt(tempo),
    signal,
    id: (kind) => `${kind}-${randomUUID()}`,
  };
  const playing = new Set<Promise<void>>();
  const play = (scene: Scene): void => {
    const done = playScene(scene, stage, log).finally(() => playing.delete(done));
    playing.add(done);
  };
  const over = (async () => {
    // Each round plays every scene of the program, so that all scenes appear regularly.
    for (let round: Scene[] = []; ; await pauseAt(pace)(roughly(1000), signal)) {
      if (playing.size >= AT_ONCE) continue;
      if (round.length === 0) round = shuffled(PROGRAM);
      const scene = round.pop();
      if (scene) play(scene);
    }
  })().catch(() => {});
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(Object.values(callers).map((caller) => caller.close()));
      await Promise.all([over, ...playing]);
    },
  };
}

/** Creates the callers of the users: alice's over HTTP, and the others' over links. */
function createCallers({ url, token }: Relay): Readonly<Record<User, Caller>> {
  return {
    alice: createHttpCaller({ url, token: () => token('alice') }),
    bob: createLinkCaller({ url: connectUrl(url), token: () => token('bob') }),
    carol: createLinkCaller({ url: connectUrl(url), token: () => token('carol') }),
  };
}

/** Plays one scene. A refusal (CallerError) is expected. Any other error is a fault of the demo and is logged. */
async function playScene(scene: Scene, stage: SceneContext, log: Log): Promise<void> {
  try {
    await scene(stage);
  } catch (error) {
    if (!(error instanceof CallerError) && !stage.signal.aborted) log.warn({ error }, 'a scene of the demo failed');
  }
}

function shuffled(scenes: readonly Scene[]): Scene[] {
  return scenes
    .map((scene) => ({ scene, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ scene }) => scene);
}

const ANSWER = z.object({
  items: z.array(z.object({ retained: z.boolean(), duplicate: z.boolean(), error: z.unknown() })),
});

/** Returns a function that sends bob's events over HTTP until the signal is aborted. */
function createIngest({ url, token }: Relay, signal: AbortSignal): SceneContext['ingest'] {
  return async (events) => {
    const headers = { authorization: `Bearer ${await token('bob', ['host'])}`, 'content-type': 'application/json' };
    const answer = await fetch(`${url}/ingest`, { method: 'POST', headers, body: JSON.stringify(events), signal });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`The events were refused with ${answer.status}: ${text}`);
    const bad = ANSWER.parse(JSON.parse(text)).items.find(({ retained, duplicate }) => !retained && !duplicate);
    if (bad) throw new Error(`An event was refused: ${JSON.stringify(bad.error)}`);
  };
}
