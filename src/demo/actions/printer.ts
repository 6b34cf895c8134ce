/** Defines the actions of the demo's printer, which runs out of paper. */
import { ActionError, type Action } from '../../clients/runtime/index.ts';
import { roughly, type Pause } from '../pause.ts';

/** The number of pages in a full tray. */
const PAGES_IN_TRAY = 6;
/** The approximate time to print one page, in milliseconds. */
const PAGE_MS = 700;

/**
 * Returns the actions of bob's printer. It prints one page at a time. An empty tray fails one command and is then
 * refilled.
 */
export function printerActions(pause: Pause): readonly Action[] {
  let tray = PAGES_IN_TRAY;
  return [
    {
      name: 'print.page',
      summary: 'Prints one page.',
      version: '5.0.0',
      schema: {
        type: 'object',
        properties: { text: { type: 'string', maxLength: 2000 }, copies: { const: 1 } },
        required: ['text'],
        additionalProperties: false,
      },
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
      schema: { type: 'object', additionalProperties: false },
      run: () => ({ pages_left: tray }),
    },
  ];
}
