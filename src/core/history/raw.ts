/** Reads a bounded sample of stored rows, for operators only. */
import { requireAdmin, type Principal } from '../auth/principal.ts';
import { completenessOf } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid } from '../errors.ts';
import { canonicalUser } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { RAW_SAMPLE, RAW_SAMPLE_BYTES } from '../limits.ts';
import type { Completeness, ObservedSource } from '../page.ts';
import { within } from '../range.ts';
import { isSuffix, splitStreamKey, STREAM_FORM } from './message.ts';
import { readPayloads } from './payloads.ts';
import type { RawSample, SampleBounds } from './store.ts';

export type RawQuery = {
  /** The full key of a stream; null: all streams. */
  readonly stream?: string | null | undefined;
  /** Returns only payloads, and skips messages without one. */
  readonly valuesOnly?: boolean | null | undefined;
  /** The most items, 1 to 100; null: 100. */
  readonly limit?: number | null | undefined;
};

/**
 * A raw sample, newest message first. An item is a message as the backend stores it, or only its payload. It is null
 * where a payload could not be read.
 */
export type RawMessages = { readonly items: readonly (JsonText | null)[]; readonly completeness: Completeness };

/**
 * Returns one bounded sample of stored messages, including members that only this backend has. Administrators only, and
 * only if the deployment allows it (`raw_history_disabled`). The requester is checked first, so that others do not
 * learn the deployment's setting. Null: no such stream.
 */
export async function readRaw(deps: Deps, requester: Principal | null, query: RawQuery): Promise<RawMessages | null> {
  requireAdmin(requester);
  if (!deps.rawMessages || deps.reveal !== 'argument')
    fail('raw_history_disabled', 'The raw sample of history is disabled on this relay.');
  const messages = within('limit', query.limit, { default: RAW_SAMPLE, min: 1, max: RAW_SAMPLE });
  const of = query.valuesOnly ? 'payloads' : 'stored';
  const bounds: SampleBounds = { messages, bytes: RAW_SAMPLE_BYTES, of };
  const sample = await deps.backend.history.sample(streamOf(query.stream ?? null), bounds);
  if (sample === null) return null;
  const items = of === 'stored' ? sample.rows.map(({ stored }) => stored) : await payloadsOf(deps, requester, sample);
  return { items, completeness: completenessOf(sourcesOf(sample, { items, messages, asOf: deps.clock.now() })) };
}

function streamOf(key: string | null): { userId: string; suffix: string } | null {
  if (key === null) return null;
  const { userId, suffix } = splitStreamKey(key) ?? invalid('stream', STREAM_FORM);
  return isSuffix(suffix) ? { userId: canonicalUser(userId), suffix } : invalid('stream', STREAM_FORM);
}

async function payloadsOf(
  deps: Deps,
  requester: Principal | null,
  { rows }: RawSample,
): Promise<readonly (JsonText | null)[]> {
  const shown = await readPayloads(
    deps,
    requester,
    rows.map(({ message }) => message),
  );
  return shown.map(({ text }) => text);
}

type Seen = { readonly items: RawMessages['items']; readonly messages: number; readonly asOf: number };

function sourcesOf({ cut, gaps }: RawSample, { items, messages, asOf }: Seen): readonly ObservedSource[] {
  const own: ObservedSource = {
    source: 'messages',
    nodeId: null,
    complete: !cut,
    observed: items.length,
    limit: messages,
    reason: cut ? 'limit_reached' : null,
    asOf,
  };
  const unread = items.filter((item) => item === null).length;
  const lost: ObservedSource = { ...own, complete: false, observed: 0, limit: null, reason: 'store_unavailable' };
  return [own, ...gaps, ...(unread > 0 ? [lost] : [])];
}
