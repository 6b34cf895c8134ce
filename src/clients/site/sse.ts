/** One event of a stream. `data`: its lines, joined by LF. */
export type SseFrame = { readonly event: string; readonly data: string };

export interface SseParser {
  /** How long the stream asks to wait before coming back, milliseconds; null while it said nothing. */
  readonly retryMs: number | null;
  /**
   * The events that these bytes complete; what is left is kept for the next. Total: any bytes give events or none. Throws RangeError when
   * one event would hold more than the bound, and only then.
   */
  push(bytes: Uint8Array): readonly SseFrame[];
}

/**
 * Reads an event stream as the HTML standard says, wherever its chunks are cut: lines end with CR, LF or CRLF, a BOM may come first, and an
 * event that no blank line ends is not one. `maxChars` bounds what one event may hold.
 */
export function createSseParser(maxChars: number): SseParser {
  const decoder = new TextDecoder();
  let line = '';
  let event = '';
  let data: string[] = [];
  let held = 0;
  let retryMs: number | null = null;
  let afterCr = false;

  function take(field: string, value: string): void {
    if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
    else if (field === 'retry' && /^\d{1,9}$/.test(value)) retryMs = Number(value);
    if (field === 'event' || field === 'data') held += value.length + 1;
  }

  function finish(): SseFrame | null {
    const frame = data.length === 0 ? null : { event: event === '' ? 'message' : event, data: data.join('\n') };
    event = '';
    data = [];
    held = 0;
    return frame;
  }

  function endLine(): SseFrame | null {
    const text = line;
    line = '';
    if (text === '') return finish();
    const colon = text.indexOf(':');
    // A line that begins with a colon is a comment: it names no field.
    if (colon < 0) take(text, '');
    else take(text.slice(0, colon), text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1));
    return null;
  }

  function append(text: string): void {
    line += text;
    if (held + line.length > maxChars) throw new RangeError(`An event holds more than ${maxChars} characters.`);
  }

  return {
    get retryMs() {
      return retryMs;
    },
    push(bytes) {
      let text = decoder.decode(bytes, { stream: true });
      if (text === '') return [];
      // The LF of a CRLF that was cut in two.
      if (afterCr && text.startsWith('\n')) text = text.slice(1);
      afterCr = text === '' ? false : text.endsWith('\r');
      const frames: SseFrame[] = [];
      const lines = text.split(/\r\n|\r|\n/);
      const rest = lines.pop() ?? '';
      for (const part of lines) {
        append(part);
        const frame = endLine();
        if (frame) frames.push(frame);
      }
      append(rest);
      return frames;
    },
  };
}
