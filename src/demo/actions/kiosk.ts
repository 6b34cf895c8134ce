import { ActionCancelled, type Action, type Call, type Params } from '../../clients/runtime/index.ts';
import { roughly, type Pause } from '../pause.ts';

type Note = { readonly number: number; readonly text: string; readonly at: string };

const NOTES_MAX = 100;
const CHAPTERS = ['visitors', 'opening hours', 'coffee sold', 'complaints', 'lost umbrellas', 'outlook'];
const CHAPTER_MS = 500;

/** What bob's kiosk can do. Its notes live as long as its process. */
export function kioskActions(pause: Pause): readonly Action[] {
  return [...noteActions(), reportAction(pause)];
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
      summary: 'The newest notes first.',
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

function reportAction(pause: Pause): Action {
  return {
    name: 'report.build',
    summary: 'Builds the report of a day, chapter by chapter.',
    description: 'Takes a few seconds, tells its progress, and hands over the chapters it has when it is cancelled.',
    version: '0.9.0',
    schema: {
      type: 'object',
      properties: { day: { type: 'string', format: 'date' } },
      required: ['day'],
      additionalProperties: false,
    },
    metadata: { chapters: CHAPTERS.length },
    run: ({ day }, call) => buildReport(String(day), call, pause),
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
