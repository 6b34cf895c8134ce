/** Defines the actions of the demo's kiosk: notes and reports. */
import { ActionCancelled, type Action, type Call, type Params } from '../../clients/runtime/index.ts';
import { roughly, type Pause } from '../pause.ts';
import type { WorkerPool } from '../worker-pool.ts';

type Note = { readonly number: number; readonly text: string; readonly at: string };

/** The most notes that the kiosk keeps. A further note removes the oldest one. */
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
  return [...noteActions(), reportAction(pause, pool)];
}

function noteActions(): readonly Action[] {
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
      schema: {
        type: 'object',
        properties: { text: { type: 'string', minLength: 1, maxLength: 280 } },
        required: ['text'],
        additionalProperties: false,
      },
      metadata: { keeps: NOTES_MAX },
      run: add,
    },
    {
      name: 'notes.list',
      summary: 'Lists notes, newest first.',
      version: '1.1.0',
      schema: {
        type: 'object',
        properties: { limit: { type: 'integer', minimum: 1, maximum: NOTES_MAX } },
        additionalProperties: false,
      },
      run: ({ limit }) => ({
        notes: notes.toReversed().slice(0, typeof limit === 'number' ? limit : 10),
        total: notes.length,
      }),
    },
  ];
}

function reportAction(pause: Pause, pool: WorkerPool): Action {
  return {
    name: 'report.build',
    summary: 'Builds the report of a day, chapter by chapter.',
    description:
      'Takes a few seconds on one of the workers and reports progress. When cancelled, it returns the chapters that are done. With `table`, the report includes the visitors of every minute.',
    version: '0.10.0',
    schema: {
      type: 'object',
      properties: { day: { type: 'string', format: 'date' }, table: { type: 'boolean' } },
      required: ['day'],
      additionalProperties: false,
    },
    metadata: { chapters: CHAPTERS.length },
    async run({ day, table }, call) {
      const report = await pool.run({ taskId: call.commandId, signal: call.signal }, () =>
        buildReport(String(day), call, pause),
      );
      return table === true ? { ...report, visitors: visitorTable() } : report;
    },
  };
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

/**
 * Returns a table with one row for each minute. It is too large for a history row, so it is stored as a large payload.
 */
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
