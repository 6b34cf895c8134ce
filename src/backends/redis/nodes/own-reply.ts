/** Finds the reply for a caller that waits on the same node that recorded the end of the command. */
import type { Reply } from '../../../core/delivery/waiter.ts';
import type { OwnEnds } from '../commands/own-ends.ts';
import { decodeCommandOr } from '../commands/record.ts';
import type { RedisParts } from '../parts.ts';
import { jsonOr, listOf } from '../replies.ts';

/** The length of a hash in the name of an end: user's hash, client's hash, command id (see `waiters_reply`). */
const HASH_CHARS = 22;

export type OwnReplyParts = Pick<RedisParts, 'store' | 'retentionMs'> & { readonly ownEnds?: OwnEnds | undefined };

/**
 * Returns the reply for a row of this node's own mailbox. Such a row only names the end of a command, because this node
 * recorded it. If this process does not know the end any more, or got no answer when it recorded it, the end is read
 * from Redis. Null if the command's record is gone there too. Throws `store_unavailable`.
 */
export async function readOwnReply(
  { store, retentionMs, ownEnds }: OwnReplyParts,
  { partition, rpcId, name }: { readonly partition: number; readonly rpcId: string; readonly name: string },
): Promise<Reply | null> {
  const known = await ownEnds?.take(name);
  if (known) return { rpcId, command: known.command, result: known.result };
  const user = name.slice(0, HASH_CHARS);
  const key = [name.slice(HASH_CHARS, 2 * HASH_CHARS), name.slice(2 * HASH_CHARS), user];
  const [found, result] = await Promise.all([
    store.act(partition, 'commands-get', key),
    store.act(partition, 'commands-result', [...key, retentionMs]),
  ]);
  const command = decodeCommandOr(listOf(found)[1] ?? null);
  return command && { rpcId, command, result: jsonOr(result) };
}
