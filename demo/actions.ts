/**
 * Defines the actions of the demo's clients, their contexts and windows, and the worker pool that builds the kiosk's
 * reports.
 */
import { readdir, stat } from 'node:fs/promises';
import { freemem, loadavg, totalmem, uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ActionCancelled,
  ActionError,
  type Action,
  type ActionRequest,
  type Call,
  type Params,
  type ReportedContext,
  type ReportedWindow,
  type Verdict,
} from '../src/clients/runtime/index.ts';
import { roughly, type Pause } from './pause.ts';

const MIB = 1024 * 1024;
/** The most files that one answer lists. */
const FILES_MAX = 200;
const SERVICES = ['web', 'mail', 'database'];

/** The actions of alice's client `ops-console`. */
export const CONSOLE_ACTIONS: readonly Action[] = [
  {
    name: 'echo',
    summary: 'Returns the given text.',
    version: '1.2.0',
    schema: object({ text: { type: 'string', maxLength: 1000 } }, ['text']),
    run: ({ text }) => ({ text }),
  },
  {
    name: 'host.load',
    summary: 'The current load and memory of the machine.',
    version: '2.0.1',
    schema: object({}),
    run: hostLoad,
  },
  {
    name: 'files.list',
    summary: 'Lists the files of this demo.',
    description: 'Without a folder, lists the top folder of the demo. No other folder of the machine can be read.',
    version: '1.0.0',
    schema: object({ folder: { type: 'string', pattern: '^[a-z]{1,32}$' } }),
    run: listFiles,
  },
  {
    name: 'service.restart',
    summary: 'Restarts a service and returns when it is up again.',
    description: 'Nothing is really restarted: the action only takes the time of a restart. It cannot be cancelled.',
    version: '3.1.0',
    schema: object({ service: { enum: SERVICES }, seconds: { type: 'number', minimum: 0, maximum: 10 } }, ['service']),
    metadata: { careful: true },
    run: restart,
  },
];

/** Authorizes commands by the console's own policy, in addition to the relay's policy. */
export function authorizeConsole({ action, params }: ActionRequest): Verdict {
  if (action !== 'service.restart' || params['service'] !== 'database') return true;
  return { allow: false, message: 'This console may not restart the database.' };
}

function object(properties: Readonly<Record<string, unknown>>, required: readonly string[] = []) {
  return { type: 'object', properties, required, additionalProperties: false };
}

function hostLoad() {
  const [one = 0, five = 0, fifteen = 0] = loadavg();
  return {
    load: { one, five, fifteen },
    memory_mib: { free: Math.round(freemem() / MIB), total: Math.round(totalmem() / MIB) },
    up_hours: Math.round(uptime() / 360) / 10,
  };
}

async function listFiles({ folder }: Params) {
  const demo = new URL('./', import.meta.url);
  const at = typeof folder === 'string' ? new URL(`${folder}/`, demo) : demo;
  const entries = await readdir(at, { withFileTypes: true }).catch(() => {
    throw new Error(`The demo has no folder ${String(folder)}.`);
  });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  const rows = names.slice(0, FILES_MAX).map(async (name) => ({ name, bytes: (await stat(new URL(name, at))).size }));
  return { files: await Promise.all(rows), all: names.length <= FILES_MAX };
}

/**
 * Takes the time that the params give, by default 0.5 s. Like many actions, it ignores the signal, so it may end after
 * its deadline.
 */
async function restart({ service, seconds }: Params) {
  const began = Date.now();
  await sleep(typeof seconds === 'number' ? seconds * 1000 : 500);
  return { service, up: true, took_ms: Date.now() - began };
}

// Defines the actions of the demo's kiosk: notes and reports.

type Note = { readonly number: number; readonly text: string; readonly at: string };

/** The most notes that the kiosk keeps. If there is one more, the oldest is removed. */
const NOTES_MAX = 100;
const CHAPTERS = ['visitors', 'opening hours', 'coffee sold', 'complaints', 'lost umbrellas', 'outlook'];
/** The approximate time to build one chapter of a report, in milliseconds. */
const CHAPTER_MS = 500;
/** The minute of the day at which the visitor table begins: 9:00. */
const OPEN_FROM = 9 * 60;
/** The minute of the day at which the visitor table ends: 18:00. */
const OPEN_UNTIL = 18 * 60;

/** Returns the actions of bob's kiosk. Notes are kept in memory. The workers of the pool build the reports. */
export function kioskActions(pause: Pause, pool: WorkerPool): readonly Action[] {
  let count = 0;
  const notes: Note[] = [];
  const add = ({ text }: Params): Note => {
    const note = { number: ++count, text: String(text), at: new Date().toISOString() };
    notes.push(note);
    if (notes.length > NOTES_MAX) notes.shift();
    return note;
  };
  return [
    {
      name: 'notes.add',
      summary: 'Pins a note to the board.',
      version: '1.1.0',
      schema: object({ text: { type: 'string', minLength: 1, maxLength: 280 } }, ['text']),
      metadata: { keeps: NOTES_MAX },
      run: add,
    },
    {
      name: 'notes.list',
      summary: 'Lists notes, newest first.',
      version: '1.1.0',
      schema: object({ limit: { type: 'integer', minimum: 1, maximum: NOTES_MAX } }),
      run: ({ limit }) => ({
        notes: notes.toReversed().slice(0, typeof limit === 'number' ? limit : 10),
        total: notes.length,
      }),
    },
    {
      name: 'report.build',
      summary: 'Builds the report of a day, chapter by chapter.',
      description:
        'Takes a few seconds on one of the workers and reports progress. When cancelled, it returns the chapters that are done. With `table`, the report includes the visitors of every minute.',
      version: '0.10.0',
      schema: object({ day: { type: 'string', format: 'date' }, table: { type: 'boolean' } }, ['day']),
      metadata: { chapters: CHAPTERS.length },
      async run({ day, table }, call) {
        const report = await pool.run({ taskId: call.commandId, signal: call.signal }, () =>
          buildReport(String(day), call, pause),
        );
        return table === true ? { ...report, visitors: visitorTable() } : report;
      },
    },
  ];
}

async function buildReport(day: string, call: Call, pause: Pause) {
  const chapters: string[] = [];
  for (const chapter of CHAPTERS) {
    await pause(roughly(CHAPTER_MS), call.signal).catch(() => {
      throw new ActionCancelled({ day, chapters });
    });
    chapters.push(`${chapter}: ${Math.floor(Math.random() * 100)}`);
    call.progress({ chapter, done: chapters.length, of: CHAPTERS.length });
  }
  return { day, chapters };
}

/** Returns a row for each minute. The result is too large for a history row, so history spills it. */
function visitorTable() {
  const minutes = Array.from({ length: OPEN_UNTIL - OPEN_FROM }, (_, i) => OPEN_FROM + i);
  return minutes.map((minute) => ({ at: clockTime(minute), visitors: few(), coffees: few(), questions: few() }));
}

function clockTime(minute: number): string {
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${two(Math.floor(minute / 60))}:${two(minute % 60)}`;
}

function few(): number {
  return Math.floor(Math.random() * 8);
}

/** The actions of alice's phone. */
export const PHONE_ACTIONS: readonly Action[] = [
  {
    name: 'location.read',
    summary: 'The location of the phone.',
    version: '1.4.0',
    schema: object({ accuracy: { enum: ['coarse', 'fine'] } }),
    run: ({ accuracy }) => position(accuracy === 'fine' ? 5 : 2),
  },
  {
    name: 'photo.take',
    summary: 'Takes a photo after the approval of the person who holds the phone.',
    version: '1.0.2',
    schema: object({ subject: { type: 'string', minLength: 1, maxLength: 40 } }, ['subject']),
    approval: true,
    metadata: { camera: 'rear', format: 'image/svg+xml' },
    run: photo,
  },
];

/** Creates a function that decides as the phone's holder would: after a moment, and against every third photo. */
export function createHolder(pause: Pause): (request: ActionRequest) => Promise<Verdict> {
  let requests = 0;
  return async ({ signal }) => {
    requests++;
    await pause(roughly(700), signal);
    return requests % 3 === 0 ? { allow: false, message: 'Not now, please.' } : true;
  };
}

/** Returns a position in a park, which moves slowly with time. */
function position(digits: number) {
  const round = (degrees: number): number => Number(degrees.toFixed(digits));
  const turn = Date.now() / 600_000;
  return {
    latitude: round(52.5145 + Math.sin(turn) / 500),
    longitude: round(13.3501 + Math.cos(turn) / 300),
    at: new Date().toISOString(),
  };
}

function photo({ subject }: Params) {
  const hue = Math.floor(Math.random() * 360);
  const text = String(subject).replaceAll(/[^\p{L}\p{N} ]/gu, '');
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 90"><rect width="160" height="90" fill="hsl(${hue} 60% 70%)"/>` +
    `<text x="80" y="50" text-anchor="middle" font-family="sans-serif">${text}</text></svg>`;
  return { taken_at: new Date().toISOString(), type: 'image/svg+xml', image: svg };
}

/** The number of pages in a full tray. */
const PAGES_IN_TRAY = 6;
/** The approximate time to print one page, in milliseconds. */
const PAGE_MS = 700;

/** Returns the actions of bob's printer. It prints one page at a time. If its tray is empty, the next command fails. */
export function printerActions(pause: Pause): readonly Action[] {
  let tray = PAGES_IN_TRAY;
  return [
    {
      name: 'print.page',
      summary: 'Prints one page.',
      version: '5.0.0',
      schema: object({ text: { type: 'string', maxLength: 2000 }, copies: { const: 1 } }, ['text']),
      lease: true,
      metadata: { paper: 'A4', colour: false },
      async run({ text }, { signal }) {
        if (tray === 0) {
          tray = PAGES_IN_TRAY;
          throw new ActionError('The tray was empty. It has been filled: try again.');
        }
        tray--;
        await pause(roughly(PAGE_MS), signal);
        return { printed: String(text).length, pages_left: tray };
      },
    },
    {
      name: 'printer.status',
      summary: 'The number of sheets left.',
      version: '5.0.0',
      schema: object({}),
      run: () => ({ pages_left: tray }),
    },
  ];
}

type WorkerTask = { readonly taskId: string; readonly signal: AbortSignal };

/** A pool of workers in windows. Each worker does one task at a time. */
export class WorkerPool implements DemoPlace {
  readonly #workersInEach: number;
  #opened = 0;
  #desks: readonly Desk[];
  #changed = (): void => {};
  /** The tasks that wait for an idle worker, oldest first. */
  readonly #waiting = new Set<(worker: Worker) => void>();

  constructor({ windows, workersInEach }: { readonly windows: number; readonly workersInEach: number }) {
    this.#workersInEach = workersInEach;
    this.#desks = Array.from({ length: windows }, () => this.#open());
  }

  contexts(): readonly ReportedContext[] {
    return this.#desks.flatMap(deskContexts);
  }

  windows(): readonly ReportedWindow[] {
    return this.#desks.map(deskWindow);
  }

  onChange(listener: () => void): void {
    this.#changed = listener;
  }

  /**
   * Waits for an idle worker, assigns the task to it, and calls `work`. Settles like `work`. If the signal is aborted
   * before a worker is idle, rejects with the signal's reason without calling `work`.
   */
  async run<T>(task: WorkerTask, work: () => Promise<T>): Promise<T> {
    const worker = await this.#assign(task);
    this.#changed();
    try {
      return await work();
    } finally {
      this.#release(worker);
    }
  }

  /**
   * Drains the oldest window: assigns it no more tasks, waits until it has none, waits for `rest`, and replaces it by a
   * new window. Does nothing if all windows are draining. Rejects if `rest` rejects; the window is then still draining.
   */
  async renew(rest: () => Promise<void>): Promise<void> {
    const old = this.#desks.find(({ draining }) => !draining);
    if (!old) return;
    old.draining = true;
    this.#changed();
    await emptied(old);
    await rest();
    this.#desks = [...this.#desks.filter((desk) => desk !== old), this.#open()];
    this.#hand();
    this.#changed();
  }

  #open(): Desk {
    return openDesk(++this.#opened, this.#workersInEach);
  }

  /** Waits for an idle worker. Sets its `taskId` at once, so that no other task gets the worker. */
  #assign({ taskId, signal }: WorkerTask): Promise<Worker> {
    const { promise, resolve, reject } = Promise.withResolvers<Worker>();
    const take = (worker: Worker): void => {
      signal.removeEventListener('abort', giveUp);
      worker.taskId = taskId;
      resolve(worker);
    };
    const giveUp = (): void => {
      this.#waiting.delete(take);
      reject(signal.reason);
    };
    signal.throwIfAborted();
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting.add(take);
    this.#hand();
    return promise;
  }

  #release(worker: Worker): void {
    worker.taskId = null;
    worker.tasksDone++;
    for (const desk of this.#desks) if (desk.draining && isEmpty(desk)) desk.emptied();
    this.#hand();
    this.#changed();
  }

  #hand(): void {
    for (const take of this.#waiting) {
      const worker = this.#idle();
      if (!worker) return;
      this.#waiting.delete(take);
      take(worker);
    }
  }

  #idle(): Worker | undefined {
    const workers = this.#desks.flatMap((desk) => (desk.draining ? [] : desk.workers));
    return workers.find(({ taskId }) => taskId === null);
  }
}

type Worker = {
  readonly contextId: string;
  readonly windowId: string;
  taskId: string | null;
  tasksDone: number;
};

/** A window of workers. `emptied`: called when the window is draining and its last task ends. */
type Desk = {
  readonly windowId: string;
  readonly workers: readonly Worker[];
  draining: boolean;
  emptied: () => void;
};

function openDesk(number: number, workers: number): Desk {
  const windowId = `desk-${number}`;
  const worker = (_: unknown, i: number): Worker => {
    return { contextId: `${windowId}-worker-${i + 1}`, windowId, taskId: null, tasksDone: 0 };
  };
  return { windowId, workers: Array.from({ length: workers }, worker), draining: false, emptied() {} };
}

/** Resolves when a draining window has no tasks left. */
function emptied(desk: Desk): Promise<void> {
  if (isEmpty(desk)) return Promise.resolve();
  return new Promise((resolve) => (desk.emptied = resolve));
}

function isEmpty({ workers }: Desk): boolean {
  return workers.every(({ taskId }) => taskId === null);
}

/**
 * Returns the contexts of a window. In a draining window idle workers are left out, so that the relay closes their
 * contexts.
 */
function deskContexts({ draining, workers }: Desk): readonly ReportedContext[] {
  return workers.filter(({ taskId }) => !draining || taskId !== null).map(contextOf);
}

function deskWindow({ windowId, workers, draining }: Desk): ReportedWindow {
  const size = { tabCount: workers.length, capacity: workers.length };
  return windowOf(windowId, { ownership: 'worker', state: 'minimized', ...size, draining });
}

function contextOf({ contextId, windowId, taskId, tasksDone }: Worker): ReportedContext {
  const metadata = { purpose: 'reports', tasks_done: tasksDone };
  const status = taskId === null ? 'idle' : 'active';
  return { contextId, status, ownership: 'worker', windowId, taskId, title: 'Report builder', metadata };
}

/** The contexts and windows that a client reports now. */
export interface DemoPlace {
  contexts(): readonly ReportedContext[];
  windows(): readonly ReportedWindow[];
  /** Sets the listener that is called after each change. A later call replaces it. */
  onChange(listener: () => void): void;
}

/** Returns contexts that never change, without windows. */
export function stillPlace(contexts: readonly ReportedContext[]): DemoPlace {
  return { contexts: () => contexts, windows: () => [], onChange() {} };
}

/** Returns a window for a report: an open, ordinary window of the user by default. `more`: overrides the defaults. */
function windowOf(windowId: string, more: Partial<ReportedWindow> = {}): ReportedWindow {
  const looks = { focused: false, type: 'normal', state: 'normal', incognito: false, tabCount: 1 } as const;
  return { windowId, ownership: 'user-owned', ...looks, draining: false, status: 'open', ...more };
}

/** The approximate time between two replacements of a window of workers, in milliseconds. */
const RENEW_EVERY_MS = 20_000;
/** How long a window without tasks stays open before it is replaced, in milliseconds. */
const LINGER_MS = 3_000;
const HALL = 'hall';

/** Returns what the kiosk reports: the screen in the entrance hall, and the windows of the workers. */
export function kioskPlace(pool: WorkerPool): DemoPlace {
  const screen = { contextId: 'hall-screen', windowId: HALL, title: 'Welcome' } as const;
  return {
    contexts: () => [{ ...screen, status: 'active', ownership: 'user-owned' }, ...pool.contexts()],
    windows: () => [windowOf(HALL, { focused: true, type: 'app', state: 'fullscreen' }), ...pool.windows()],
    onChange: (listener) => pool.onChange(listener),
  };
}

/** Replaces the windows of workers one after the other. Real programs do this because their windows leak memory. */
export async function renewDesks(pool: WorkerPool, pause: Pause, signal: AbortSignal): Promise<never> {
  for (;;) {
    await pause(roughly(RENEW_EVERY_MS), signal);
    await pool.renew(() => pause(LINGER_MS, signal));
  }
}
