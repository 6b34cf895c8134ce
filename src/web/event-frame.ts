/** Encodes frames of an event stream (https://html.spec.whatwg.org/multipage/server-sent-events.html). */

const BREAKS = /[\r\n\u0000]/;

export type EventFrame = {
  readonly event: string;
  readonly id?: string;
  /** The data of the event as JSON text. */
  readonly data: string;
};

/**
 * Writes one frame. Throws a TypeError if a field contains CR, LF or NUL: a line break would start a new field, and
 * clients ignore some fields that contain NUL.
 */
export function eventFrame({ event, id, data }: EventFrame): string {
  for (const field of [event, id ?? '', data]) {
    if (BREAKS.test(field)) throw new TypeError('A field of an event stream must not contain CR, LF or NUL.');
  }
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`;
}
