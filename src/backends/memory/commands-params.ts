/** Counts the bytes of waiting commands' params in the share `queued_bytes` of their users. */
import { utf8Length, type JsonText } from '../../core/json.ts';
import { paramsAreSmall, paramsBytesAtMost, type ShareRefusal, type Holdings } from '../../core/shares/shares.ts';
/** The members of a command and of its client's queue that this file uses. */
type WithParams = {
  params: JsonText | null;
  paramsBytes: number;
  readonly client: { readonly holdings: Holdings };
};
type Queue = {
  readonly binding: object | null;
  readonly waiting: { readonly size: number };
  readonly holdings: Holdings;
};

/**
 * Returns why the params of a new command do not fit in what the client's user may hold of `queued_bytes`, or null if
 * they fit. Small params for a connected client with an empty queue are never refused, because they are about to be
 * dispatched.
 */
export function paramsRefusal({ binding, waiting, holdings }: Queue, params: JsonText | null): ShareRefusal | null {
  if (params === null) return null;
  if (binding && waiting.size === 0 && paramsAreSmall(params)) return null;
  if (holdings.refusal('queued_bytes', paramsBytesAtMost(params)) === null) return null;
  return holdings.refusal('queued_bytes', utf8Length(params));
}

/** Counts the params of an admitted command until `giveUpParams` returns them. */
export function holdParams(entry: WithParams): void {
  if (entry.params === null) return;
  entry.paramsBytes = utf8Length(entry.params);
  entry.client.holdings.take('queued_bytes', entry.paramsBytes);
}

/** Returns the params of a command that was dispatched or has ended, and stops counting them. */
export function giveUpParams(entry: WithParams): JsonText | null {
  const { params, paramsBytes } = entry;
  entry.params = null;
  entry.paramsBytes = 0;
  entry.client.holdings.release('queued_bytes', paramsBytes);
  return params;
}
