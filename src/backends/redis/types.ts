/** The types of Redis clients and replies, the error of a failed call, and the readers of replies. */
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { CallboardError } from '../../core/errors.ts';
import { trustJson, type JsonText } from '../../core/json.ts';

export type Client = Redis | Cluster;
/** The options of ioredis without `replyMapping`, which its overloads do not accept. */
export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;
/** An answer of Redis: a text, a number, null, or a list of answers. */
export type Reply = string | number | null | readonly Reply[];
export type ReadCommand = readonly [name: string, ...args: readonly (string | number)[]];
/** The calling node, with its epoch in this partition. */
export type Identity = { readonly nodeId: string; readonly epoch: number };
/** What a call of a transaction says of the calling node: as the frame of a call of acts (see program/prelude.lua). */
export type StoreFrame = {
  readonly node: string;
  readonly epoch: number;
  readonly number: number;
  readonly confirmed: number;
  /** The time instead of that of Redis, or ''. */
  readonly time: string;
};
/**
 * Why a call was refused. `FENCED`: the node's epoch is no longer valid. `LOST`: the store lost a write that it had
 * confirmed.
 */
export type Verdict = 'FENCED' | 'LOST';

/**
 * Returns the error for a requester: `store_full` if Redis has no memory left (it then refuses a call before it runs
 * any of it), else `store_unavailable`. Its cause is the error of Redis or of the connection, for the log.
 */
export function unavailable(cause: unknown): CallboardError {
  if (cause instanceof CallboardError) return cause;
  if (cause instanceof Error && cause.message.startsWith('OOM'))
    return new CallboardError('store_full', 'The store has no room for more.', { cause, retryAfterMs: 1000 });
  return new CallboardError('store_unavailable', 'The store does not answer.', { cause, retryAfterMs: 1000 });
}

// Converts replies of Redis, whose form TypeScript does not know, to lists, maps and JSON texts.

/**
 * The fields of a hash: names and values in turn, as a script returns them, or an object, as the client returns
 * HGETALL.
 */
export type Fields = Reply | Readonly<Record<string, string>>;

/** Returns a reply as a list; empty if it is not a list. */
export function listOf(reply: Fields | undefined): readonly Reply[] {
  return Array.isArray(reply) ? (reply as readonly Reply[]) : [];
}

/** Returns a reply that is a text; null for any other reply. */
export function textOr(reply: Fields | undefined): string | null {
  return typeof reply === 'string' ? reply : null;
}

/** Returns the number in a reply that is a text; null for any other reply. */
export function numberOr(reply: Fields | undefined): number | null {
  return typeof reply === 'string' ? Number(reply) : null;
}

/** Returns a reply that is a payload, as JSON text; null if there is none. */
export function jsonOr(reply: Fields | undefined): JsonText | null {
  return typeof reply === 'string' ? trustJson(reply) : null;
}

/** Returns the fields of a hash whose values are numbers, such as members with their scores. */
export function numbersOf(fields: Fields | undefined): ReadonlyMap<string, number> {
  return new Map([...fieldsOf(fields)].map(([name, value]) => [name, Number(value)]));
}

/** Returns the fields of a hash by name; empty if there is no hash. */
export function fieldsOf(fields: Fields | undefined): ReadonlyMap<string, string> {
  if (fields === undefined || fields === null || typeof fields !== 'object') return new Map();
  if (!Array.isArray(fields)) return new Map(Object.entries(fields as Readonly<Record<string, string>>));
  const flat = fields as readonly Reply[];
  const found = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) found.set(String(flat[i]), String(flat[i + 1]));
  return found;
}
