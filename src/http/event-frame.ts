/** Frames of an event stream by https://html.spec.whatwg.org/multipage/server-sent-events.html, written so that no field ends early. */

const BREAKS = /[\r\n\u0000]/;

export type EventFrame = {
  readonly event: string;
  readonly id?: string;
  /** JSON text. */
  readonly data: string;
};

/** Throws a TypeError where a field holds a CR, LF or NUL: it would begin a field of its own, or be dropped. */
export function eventFrame({ event, id, data }: EventFrame): string {
  for (const field of [event, id ?? '', data]) {
    if (BREAKS.test(field)) throw new TypeError('A field of an event stream must not hold CR, LF or NUL.');
  }
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`;
}
