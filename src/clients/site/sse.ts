/** Parses Server-Sent Events. */

/** One event of a stream. `data`: its data lines, joined by LF. */
export type SseFrame = { readonly event: string; readonly data: string };

interface SseParser {
  /** The value of the stream's last `retry` field, in milliseconds; null if there was none. */
  readonly retryMs: number | null;
  /**
   * Adds bytes. Returns the events that are now complete, and keeps the rest for the next call. Accepts any bytes.
   * Throws RangeError only if an event exceeds `maxChars`.
   */
  push(bytes: Uint8Array): readonly SseFrame[];
}

/**
 * Creates a parser for an event stream according to the HTML standard. Chunks may be cut anywhere. Lines end with CR,
 * LF or CRLF, the stream may begin with a BOM, and an event without a blank line after it is discarded. `maxChars`: the
 * most characters of one event.
 */
export function createSseParser(maxChars: number): SseParser {
  // The parser removes the BOM itself: if the BOM is split between two chunks, the decoder of some runtimes removes
  // two.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let begun = false;
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
    // A line that begins with a colon is a comment: the name of its field is empty.
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
      if (!begun && text.startsWith('\uFEFF')) text = text.slice(1);
      begun = true;
      // Skips the LF of a CRLF that was split between two chunks.
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
