/**
 * Defines the scenes in which bob calls, and the events that are ingested for him. A scene is a short story of
 * invocations.
 */
import type { DemoEvent } from '../ingest.ts';
import { pick, target, type Program, type Scene } from './scene.ts';

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

export const BOB: Program = [
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
