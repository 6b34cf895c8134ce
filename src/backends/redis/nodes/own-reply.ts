/** Finds the end that a row of a node's own mailbox names, for the callers that wait on that node. */
import type { OwnEnd, OwnEnds } from '../commands/own-ends.ts';
import { decodeCommandOr } from '../commands/record.ts';
import type { RedisParts } from '../parts.ts';
import { jsonOr, listOf } from '../replies.ts';

/**
 * The length of a hash in the name of an end, in characters. The name is the user's hash, the client's hash and the
 * command id (see `waiters_reply`).
 */
const HASH_CHARS = 22;

export type OwnReplyParts = Pick<RedisParts, 'store' | 'retentionMs'> & { readonly ownEnds?: OwnEnds | undefined };

/**
 * Returns the end of a command for a row of this node's own mailbox. Such a row has no record and no result, because
 * this node recorded the end. If this process does not know the end any more, or got no answer when it recorded it, the
 * end is read from Redis. Resolves to null if the command's record is gone there too. Throws `store_unavailable`.
 */
export async function readOwnEnd(
  { store, retentionMs, ownEnds }: OwnReplyParts,
  { partition, name }: { readonly partition: number; readonly name: string },
): Promise<OwnEnd | null> {
  const known = await ownEnds?.take(name);
  if (known) return known;
  const user = name.slice(0, HASH_CHARS);
  const key = [name.slice(HASH_CHARS, 2 * HASH_CHARS), name.slice(2 * HASH_CHARS), user];
  const [found, result] = await Promise.all([
    store.act(partition, 'commands-get', key),
    store.act(partition, 'commands-result', [...key, retentionMs]),
  ]);
  const command = decodeCommandOr(listOf(found)[1] ?? null);
  return command && { command, result: jsonOr(result) };
}
