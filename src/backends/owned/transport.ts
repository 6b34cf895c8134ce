/** The format of requests and responses between relays, and the port that carries them. */
import { isRecord, parsedJson } from '../../core/json.ts';

/** Carries texts between the processes of a deployment. A text may be lost, duplicated, delayed or reordered. */
export interface Transport {
  /**
   * Sends a text to a process. `after`: which decisions must be recorded before the text is sent: all so far in this
   * partition, all so far in all partitions of this process (`all`), or none (null).
   */
  send(process: string, text: string, after: number | 'all' | null): void;
  /** Registers the function that receives each text and the id of its sender. Call it once. */
  onText(receive: (from: string, text: string) => void): void;
  /** Registers the function that is called when texts, sent or expected, may have been lost for good. Call it once. */
  onLoss(run: () => void): void;
}

/**
 * A request to call a method in a partition. The sending process numbers its requests to each partition, and repeats a
 * request under the same number. `oldest`: the number of its oldest request to the partition that has no answer yet.
 */
export type Request = {
  readonly kind: 'request';
  readonly partition: number;
  readonly number: number;
  readonly oldest: number;
  readonly port: string;
  readonly method: string;
};

/**
 * The response of a process to a request. `answer`: the body is the returned value. `error`: the body is the error.
 * `not_owner`: the process does not own the partition and did not run the call.
 */
export type Response = {
  readonly kind: 'answer' | 'error' | 'not_owner';
  readonly partition: number;
  readonly number: number;
};

/** A message: one line of JSON (`head`), followed by the text of the arguments, the value or the error (`body`). */
type WireMessage = { readonly head: Request | Response; readonly body: string };

export function writeMessage(head: Request | Response, body: string): string {
  return `${JSON.stringify(head)}\n${body}`;
}

/** Reads a message; null if the text is not a message. */
export function readMessage(text: string): WireMessage | null {
  const end = text.indexOf('\n');
  const head = end < 0 ? undefined : parsedJson(text.slice(0, end));
  return isHead(head) ? { head, body: text.slice(end + 1) } : null;
}

const KINDS: ReadonlySet<unknown> = new Set<WireMessage['head']['kind']>(['request', 'answer', 'error', 'not_owner']);

function isHead(head: unknown): head is WireMessage['head'] {
  if (!isRecord(head) || !KINDS.has(head['kind'])) return false;
  const numbers = [head['partition'], head['number'], ...(head['kind'] === 'request' ? [head['oldest']] : [])];
  return numbers.every(Number.isSafeInteger);
}
