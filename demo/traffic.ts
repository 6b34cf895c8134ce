/** Plays scenes at random, which makes the demo's traffic. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import {
  CallerError,
  createHttpCaller,
  createLinkCaller,
  type Caller,
  type Target,
} from '../src/clients/caller/index.ts';
import type { Log } from '../src/core/ports.ts';
import { connectUrl, pauseAt, roughly, type Pause, type Relay } from './relay.ts';

// Defines what a scene of the demo is, and what it may use.

/** What a scene may use. Everything ends when `signal` is aborted. */
type SceneContext = {
  /** Returns the user's caller, over HTTP or over a link. */
  caller(userId: string): Caller;
  /** Sends events of this user. Rejects unless each was retained, now or earlier. */
  ingest(userId: string, events: readonly DemoEvent[]): Promise<void>;
  readonly pause: Pause;
  readonly signal: AbortSignal;
  /** Returns a new unique id that begins with `kind`. */
  id(kind: string): string;
};

/** A few related calls. A scene may reject with a refusal. */
type Scene = (stage: SceneContext) => Promise<unknown>;

/** Scenes, and how many times each is played in one round. */
type Program = readonly (readonly [times: number, scene: Scene])[];

function target(userId: string, clientId: string, action: string): Target {
  return { userId, clientId, action };
}

function pick<T>(first: T, ...others: readonly T[]): T {
  return others[Math.floor(Math.random() * (others.length + 1))] ?? first;
}

// Defines the scenes in which alice calls. A scene is a short story of invocations.

const ops = (action: string) => target('alice', 'ops-console', action);
const phone = (action: string) => target('alice', 'phone', action);
/** How long a call waits for the phone, in milliseconds: longer than the phone's longest sleep. */
const UNTIL_AWAKE_MS = 30_000;

const echo: Scene = ({ caller, id }) =>
  caller('alice').invoke(
    ops('echo'),
    { text: pick('Anybody there?', 'Good morning.', 'One, two.') },
    { traceId: id('trace') },
  );

const load: Scene = ({ caller }) => caller('alice').invoke(ops('host.load'));

const files: Scene = ({ caller }) => caller('alice').invoke(ops('files.list'), { folder: pick('actions', 'scenes') });

/** Calls an action that fails, because its handler throws. */
const noFolder: Scene = ({ caller }) => caller('alice').invoke(ops('files.list'), { folder: 'attic' });

const restart: Scene = ({ caller }) =>
  caller('alice').invoke(ops('service.restart'), { service: pick('web', 'mail'), seconds: 0.4 });

/** Calls an action that fails, because the console's own policy refuses it. */
const denied: Scene = ({ caller }) => caller('alice').invoke(ops('service.restart'), { service: 'database' });

/**
 * Makes a call that ends as `outcome_unknown` at its deadline. The late result arrives shortly after and is retained as
 * evidence.
 */
const late: Scene = ({ caller }) =>
  caller('alice').invoke(ops('service.restart'), { service: 'web', seconds: 1.6 }, { respondWithinMs: 1000 });

/** Makes a call that is refused, because the client does not advertise the action. */
const noSuchAction: Scene = ({ caller }) => caller('alice').invoke(ops('coffee.make'), { strong: true });

/** Makes a call that waits for the phone while it sleeps. */
const locate: Scene = ({ caller, signal }) =>
  caller('alice').invoke(
    phone('location.read'),
    { accuracy: pick('coarse', 'fine') },
    { connectWithinMs: UNTIL_AWAKE_MS, signal },
  );

/** Makes a call that is refused while the phone sleeps, because the call has no connect budget. */
const locateNow: Scene = ({ caller }) => caller('alice').invoke(phone('location.read'));

/** Makes a call that expires while the phone sleeps. */
const locateSoon: Scene = ({ caller }) => caller('alice').invoke(phone('location.read'), {}, { connectWithinMs: 1000 });

/** Makes a call that needs an approval, which is sometimes refused. */
const photo: Scene = ({ caller, signal }) =>
  caller('alice').invoke(
    phone('photo.take'),
    { subject: pick('the lake', 'a heron', 'my lunch') },
    { connectWithinMs: UNTIL_AWAKE_MS, signal },
  );

/** Makes a call that is parked while the phone sleeps, and cancels it before the phone wakes. */
const changeOfMind: Scene = async ({ caller, pause, signal }) => {
  const parked = await caller('alice').invoke(
    phone('photo.take'),
    { subject: 'the moon' },
    { connectWithinMs: UNTIL_AWAKE_MS, waitFor: 'admitted' },
  );
  await pause(500, signal);
  return caller('alice').cancel(parked.handle, 'On second thoughts, no.');
};

const ALICE: Program = [
  [2, echo],
  [2, load],
  [1, files],
  [1, noFolder],
  [1, restart],
  [1, denied],
  [1, late],
  [1, noSuchAction],
  [2, locate],
  [1, locateNow],
  [1, locateSoon],
  [1, photo],
  [1, changeOfMind],
];

// Defines the scenes in which bob calls, and the events that are ingested for him. A scene is a short story of
// invocations.

const kiosk = (action: string) => target('bob', 'kiosk', action);
const printer = (action: string) => target('bob', 'printer', action);
/**
 * How long a call waits for its client, in milliseconds: longer than the kiosk takes to reconnect and the printer to
 * restart.
 */
const RECONNECT_MS = 5_000;

const today = (): string => new Date().toISOString().slice(0, 10);
const note = (): string => pick('Milk is out.', 'Closed on Monday.', 'Who left the umbrella?', 'The lift works again.');

const addNote: Scene = ({ caller }) =>
  caller('bob').invoke(kiosk('notes.add'), { text: note() }, { connectWithinMs: RECONNECT_MS });

const listNotes: Scene = ({ caller }) => caller('bob').invoke(kiosk('notes.list'), { limit: 5 });

/** Makes a call that fails, because the kiosk checks the params against the schema that it advertises. */
const wrongNote: Scene = ({ caller }) => caller('bob').invoke(kiosk('notes.add'), { txt: 'Misspelt.' });

/**
 * Makes three calls with one command id. The command runs once. The second call gets the result of the first one. The
 * third call is a conflict, because its params differ.
 */
const again: Scene = async ({ caller, id }) => {
  const commandId = id('note');
  const text = note();
  const options = { commandId, connectWithinMs: RECONNECT_MS };
  await caller('bob').invoke(kiosk('notes.add'), { text }, options);
  await caller('bob').invoke(kiosk('notes.add'), { text }, options);
  return caller('bob').invoke(kiosk('notes.add'), { text: `${text} Really.` }, options);
};

const report: Scene = ({ caller, signal }) =>
  caller('bob').invoke(kiosk('report.build'), { day: today() }, { connectWithinMs: RECONNECT_MS, signal });

/** Makes a call whose result is so large that history stores it as a spilled payload. */
const fullReport: Scene = ({ caller, signal }) =>
  caller('bob').invoke(kiosk('report.build'), { day: today(), table: true }, { connectWithinMs: RECONNECT_MS, signal });

const cancelledReport: Scene = async ({ caller, pause, signal }) => {
  const begun = await caller('bob').invoke(kiosk('report.build'), { day: today() }, { waitFor: 'acknowledged' });
  await pause(1200, signal);
  return caller('bob').cancel(begun.handle, 'The report is no longer needed.');
};

/** Aborts the wait of a call. The command continues, and is awaited later by its id. */
const hungUp: Scene = async ({ caller, id, pause, signal }) => {
  const handle = { userId: 'bob', clientId: 'kiosk', commandId: id('report') };
  const phone = new AbortController();
  const options = { commandId: handle.commandId, signal: AbortSignal.any([phone.signal, signal]) };
  const call = caller('bob').invoke(kiosk('report.build'), { day: today() }, options);
  const hangUp = pause(800, signal).then(() => phone.abort());
  await Promise.allSettled([call, hangUp]);
  return caller('bob').await(handle, { signal });
};

const print: Scene = ({ caller }) =>
  caller('bob').invoke(printer('print.page'), { text: note() }, { connectWithinMs: RECONNECT_MS });

/** Makes two calls at once. One of them fails, because the printer prints one page at a time. */
const printTwo: Scene = ({ caller }) =>
  Promise.allSettled([
    caller('bob').invoke(printer('print.page'), { text: 'Page one.' }),
    caller('bob').invoke(printer('print.page'), { text: 'Page two.' }),
  ]);

const paper: Scene = ({ caller }) => caller('bob').invoke(printer('printer.status'));

/** Returns events of the turnstile at the door. It is not a client: it only sends events. */
function passages(id: (kind: string) => string): readonly DemoEvent[] {
  const pass = (): DemoEvent => ({
    messageId: id('passage'),
    streamSuffix: 'doors/entrance',
    clientId: 'turnstile',
    instanceId: 'turnstile-1',
    payload: { name: pick('visitor.entered', 'visitor.left'), data: { door: pick('north', 'south') } },
  });
  return Array.from({ length: pick(1, 2, 4) }, pass);
}

const visitors: Scene = ({ ingest, id }) => ingest('bob', passages(id));

/**
 * Repeats events, like a device that never received the answer. The relay counts the duplicates and does not retain
 * them.
 */
const visitorsTwice: Scene = async ({ ingest, id, pause, signal }) => {
  const events = passages(id);
  await ingest('bob', events);
  await pause(500, signal);
  return ingest('bob', events);
};

const BOB: Program = [
  [2, addNote],
  [1, listNotes],
  [1, wrongNote],
  [1, again],
  [2, report],
  [1, fullReport],
  [1, cancelledReport],
  [1, hungUp],
  [1, print],
  [1, printTwo],
  [1, paper],
  [2, visitors],
  [1, visitorsTwice],
];

// Defines the scenes in which carol calls. A scene is a short story of invocations.

const page = (action: string) => target('carol', 'page', action);

const title: Scene = ({ caller }) => caller('carol').invoke(page('page.title'));

const highlight: Scene = ({ caller }) =>
  caller('carol').invoke(page('page.highlight'), { selector: pick('li', 'h1', 'p') });

const countWords: Scene = ({ caller }) =>
  caller('carol').invoke(page('page.count-words'), { selector: pick('body', 'ul') });

const CAROL: Program = [
  [1, title],
  [1, highlight],
  [1, countWords],
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
    caller: (userId) => callers.get(userId) ?? neverCast(userId),
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
  const beat = (): Promise<void> => pauseAt(pace)(roughly(1000), signal);
  const over = playAll({ play, beat, isFull: () => playing.size >= AT_ONCE }).catch(() => {});
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all([...callers.values()].map((caller) => caller.close()));
      await Promise.all([over, ...playing]);
    },
  };
}

/** Creates the callers of the users: alice's over HTTP, the others' over links. */
function createCallers({ url, token }: Relay): ReadonlyMap<string, Caller> {
  return new Map([
    ['alice', createHttpCaller({ url, token: () => token('alice') })],
    ['bob', createLinkCaller({ url: connectUrl(url), token: () => token('bob') })],
    ['carol', createLinkCaller({ url: connectUrl(url), token: () => token('carol') })],
  ]);
}

type Play = { play(scene: Scene): void; beat(): Promise<void>; isFull(): boolean };

/**
 * Plays scenes until `beat` rejects. Each round contains the whole program, so that every scene is played regularly.
 */
async function playAll({ play, beat, isFull }: Play): Promise<never> {
  let round: Scene[] = [];
  for (;;) {
    if (!isFull()) {
      if (round.length === 0) round = shuffled(PROGRAM);
      const scene = round.pop();
      if (scene) play(scene);
    }
    await beat();
  }
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

function neverCast(userId: string): never {
  throw new RangeError(`The demo has no user ${userId}.`);
}

// Sends the demo's events to the relay over HTTP.

/** An event from a device or from an application's server. */
type DemoEvent = {
  /** The id of the event. A second event with this id is a duplicate. */
  readonly messageId: string;
  readonly streamSuffix: string;
  readonly clientId: string;
  readonly instanceId: string;
  /** The payload of the event: any JSON. */
  readonly payload: unknown;
};

const ANSWER = z.object({
  items: z.array(z.object({ retained: z.boolean(), duplicate: z.boolean(), error: z.unknown() })),
});

/**
 * Returns a function that sends a user's events over HTTP until the signal is aborted. It rejects unless each event was
 * retained, now or earlier.
 */
function createIngest({ url, token }: Relay, signal: AbortSignal) {
  return async (userId: string, events: readonly DemoEvent[]): Promise<void> => {
    const headers = { authorization: `Bearer ${await token(userId, ['host'])}`, 'content-type': 'application/json' };
    const body = JSON.stringify(events.map(messageOf));
    const answer = await fetch(`${url}/ingest`, { method: 'POST', headers, body, signal });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`The events were refused with ${answer.status}: ${text}`);
    const bad = ANSWER.parse(JSON.parse(text)).items.find(({ retained, duplicate }) => !retained && !duplicate);
    if (bad) throw new Error(`An event was refused: ${JSON.stringify(bad.error)}`);
  };
}

function messageOf({ messageId, streamSuffix, clientId, instanceId, payload }: DemoEvent) {
  const from = { client_id: clientId, instance_id: instanceId };
  return { message_id: messageId, kind: 'event', stream_suffix: streamSuffix, ...from, payload };
}
