/** Opens event streams of GraphQL whose bytes a test reads while they arrive. */

/** A response that the test reads while it arrives. */
export type RawStream = {
  readonly status: number;
  readonly headers: Headers;
  /** Returns the text that was received so far. */
  text(): string;
  /** Resolves when this text has arrived this many times; rejects when the response ends before. */
  until(part: string, times?: number): Promise<void>;
  /** Resolves when the response has ended, for any reason. */
  readonly ended: Promise<void>;
  abort(): void;
};

export async function openRaw(url: string, init: RequestInit): Promise<RawStream> {
  const hangUp = new AbortController();
  const response = await fetch(url, { ...init, signal: hangUp.signal });
  const decoder = new TextDecoder();
  const watchers = new Set<() => void>();
  let text = '';
  let over = false;
  const read = async (): Promise<void> => {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      watchers.forEach((watch) => watch());
    }
  };
  const ended = read()
    .catch(() => {})
    .then(() => {
      over = true;
      watchers.forEach((watch) => watch());
    });
  const until = (part: string, times = 1): Promise<void> =>
    new Promise((resolve, reject) => {
      const watch = (): void => {
        const met = text.split(part).length > times;
        if (!met && !over) return;
        watchers.delete(watch);
        if (met) resolve();
        else reject(new Error(`the stream ended without ${JSON.stringify(part)}: ${text}`));
      };
      watchers.add(watch);
      watch();
    });
  return {
    status: response.status,
    headers: response.headers,
    text: () => text,
    until,
    ended,
    abort: () => hangUp.abort(),
  };
}

/** Opens an event stream for one operation. */
export function subscribeRaw(
  url: string,
  query: string,
  options: { requester?: string; variables?: unknown } = {},
): Promise<RawStream> {
  const { requester = 'alice', variables } = options;
  return openRaw(url, {
    method: 'POST',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json', authorization: `Bearer ${requester}` },
    body: JSON.stringify({ query, variables }),
  });
}
