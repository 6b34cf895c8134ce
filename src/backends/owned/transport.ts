/** The messages of requests between relays, and the port that carries them. */
import { isRecord, parsedJson } from '../../core/json.ts';

/**
 * Carries texts between the processes of a deployment. A text may be lost, arrive twice, late, or after a later one.
 */
export interface Transport {
  /**
   * Sends a text. `after`: what must be recorded before it leaves: what was decided so far in this partition, in all
   * partitions of this process (`all`), or nothing (null).
   */
  send(process: string, text: string, after: number | 'all' | null): void;
  /** Calls `receive` with each text that arrives, and the process that sent it. Called once. */
  onText(receive: (from: string, text: string) => void): void;
  /** Calls `run` when texts may have been lost for good, which were sent or would have arrived. Called once. */
  onLoss(run: () => void): void;
}

/**
 * A request: the call of a method in a partition. Its process numbers its requests to each partition, and repeats one
 * with the same number. `oldest`: the number of its oldest request to the partition that has no answer.
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
 * What the owner of a partition says about a request. `answer` and `error`: the body has the value or the error.
 * `not_owner`: the process does not own the partition, and did not run the call.
 */
export type Response = {
  readonly kind: 'answer' | 'error' | 'not_owner';
  readonly partition: number;
  readonly number: number;
};

/** A message: a line of JSON about it, and then the text of the arguments, of the value or of the error. */
type WireMessage = { readonly head: Request | Response; readonly body: string };

export function writeMessage(head: Request | Response, body: string): string {
  return `${JSON.stringify(head)}\n${body}`;
}

/** Reads a message; null if the text is none. */
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
