/** Requests of simulated programs over HTTP: one answer in JSON, or `fetch` as client libraries take it. */
import { Buffer } from 'node:buffer';
import { isRecord } from '../../src/core/json.ts';
import type { Target } from './http-messages.ts';
import type { HttpNetwork } from './http-network.ts';

/** How long a requester waits for an answer, in milliseconds, if the request itself does not wait. */
const ANSWER_MS = 8_000;

/** An answer. `body`: what its JSON says; null if it has none. `relay`: the one that gave it. */
export type HttpAnswer = {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> | null;
  readonly relay: string;
};

type AskOptions = {
  /** The name of the relay to ask; absent: any. */
  readonly relay?: string | undefined;
  readonly withinMs?: number;
  /** Called with each part of the answer's text, of an event stream for example. */
  readonly onText?: ((text: string) => void) | undefined;
};

export function get(path: string, token: string): Target {
  return { method: 'GET', path, headers: { authorization: `Bearer ${token}` }, body: null };
}

/** A request with a body. `headers`: besides those that every one has. */
export function sending(
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  { token, body, headers = {} }: { token: string; body: unknown; headers?: Readonly<Record<string, string>> },
): Target {
  const own = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers };
  return { method, path, headers: own, body: JSON.stringify(body) };
}

/** The `accept` of requests to GraphQL: the fast path takes the first one, and leaves the other one to Yoga. */
const ACCEPTED = { fast: 'application/graphql-response+json', yoga: 'application/graphql-response+json, */*;q=0.1' };

export type GraphqlPath = keyof typeof ACCEPTED;

export function graphql(
  token: string,
  { query, variables, path = 'fast' }: { query: string; variables: object; path?: GraphqlPath },
): Target {
  return sending('POST', '/graphql', { token, body: { query, variables }, headers: { accept: ACCEPTED[path] } });
}

/** Sends a request. Resolves with its answer; with null if the connection ended, or nothing came in time. */
export function ask(
  network: HttpNetwork,
  target: Target,
  { relay, withinMs = ANSWER_MS, onText }: AskOptions = {},
): Promise<HttpAnswer | null> {
  return new Promise((resolve) => {
    let [status, text] = [0, ''];
    const exchange = network.send(
      target,
      {
        onHead: (told) => (status = told),
        onText: (part) => {
          text += part;
          onText?.(part);
        },
        onEnd: () => resolve({ status, body: objectIn(text), relay: exchange.door?.process.name ?? '' }),
        onLost: () => resolve(null),
      },
      relay,
    );
    network.outside.after(withinMs, 'an answer is late', () => {
      exchange.hangUp();
      resolve(null);
    });
  });
}

function objectIn(text: string): HttpAnswer['body'] {
  if (!text.startsWith('{')) return null;
  const value: unknown = JSON.parse(text);
  return isRecord(value) ? value : null;
}

/** The code of a refusal by REST or GraphQL; null if the answer is none. */
export function refusalOf({ status, body }: Omit<HttpAnswer, 'relay'>): string | null {
  if (body === null) return status < 400 ? null : `status ${status}`;
  if (typeof body['code'] === 'string' && status >= 400) return body['code'];
  const { errors } = body;
  const [first] = Array.isArray(errors) ? errors : [];
  if (!isRecord(first)) return status < 400 ? null : `status ${status}`;
  return isRecord(first['extensions']) ? String(first['extensions']['code']) : 'an error without a code';
}

/** Returns the member at a path; undefined if there is none. */
export function memberAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce((at: unknown, name) => (isRecord(at) ? at[name] : undefined), value);
}

/** Returns a `fetch` over the network, for client libraries. It reads what the library asks for, as it arrives. */
export function fetchOver(network: HttpNetwork): typeof globalThis.fetch {
  return (input, init = {}) =>
    new Promise((resolve, reject) => {
      const { pathname, search } = new URL(input instanceof Request ? input.url : input);
      const headers = Object.fromEntries(new Headers(init.headers).entries());
      const body = typeof init.body === 'string' ? init.body : null;
      const target = { method: methodOf(init.method), path: pathname + search, headers, body };
      let stream: ReadableStreamDefaultController<Uint8Array> | null = null;
      const lost = (reason: unknown): void => {
        reject(reason);
        stream?.error(reason);
        stream = null;
      };
      const exchange = network.send(target, {
        onHead(status, told) {
          const hasBody = status !== 204;
          const readable = new ReadableStream<Uint8Array>({
            start: (controller) => void (stream = controller),
            cancel: () => {
              stream = null;
              exchange.hangUp();
            },
          });
          resolve(new Response(hasBody ? readable : null, { status, headers: [...told] }));
        },
        onText: (text) => stream?.enqueue(Buffer.from(text)),
        onEnd() {
          stream?.close();
          stream = null;
        },
        onLost: () => lost(new TypeError('fetch failed')),
      });
      init.signal?.addEventListener('abort', () => {
        exchange.hangUp();
        lost(init.signal?.reason);
      });
    });
}

function methodOf(method = 'GET'): Target['method'] {
  return method === 'POST' || method === 'PUT' || method === 'DELETE' ? method : 'GET';
}

/** One event of an event stream. `id`: null if it has none. */
type StreamEvent = { readonly event: string; readonly id: string | null; readonly data: string };

/** Returns a function that takes the parts of an event stream's text, and returns the events that each completes. */
export function createEventReader(): (part: string) => readonly StreamEvent[] {
  let rest = '';
  return (part) => {
    const frames = (rest + part).split('\n\n');
    rest = frames.pop() ?? '';
    return frames.flatMap((frame) => {
      const fields = new Map(
        frame.split('\n').map((line) => {
          const cut = line.indexOf(':');
          return [line.slice(0, cut), line.slice(cut + 1).trimStart()] as const;
        }),
      );
      const event = fields.get('event');
      return event === undefined ? [] : [{ event, id: fields.get('id') ?? null, data: fields.get('data') ?? '' }];
    });
  };
}
