/** Runs the verbs that revoke tokens and list revocations. */
import { confirmed } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { objectText } from '../output.ts';
import { listing } from '../listing.ts';
import { readTime } from '../amounts.ts';
import type { RunVerb } from '../verb.ts';

/** Revokes tokens. If a node has not answered, exits with 1, because that node may still accept the tokens. */
export const revoke: RunVerb = async (run) => {
  const { flags, io, output, relay, clock } = run;
  const { userId: user_id, clientId: client_id, tokenId: token_id, reason = '' } = flags;
  const issued_before = readTime(flags['issuedBefore'], '--issued-before', clock);
  const named = [user_id, client_id, token_id, issued_before].filter((part) => part !== undefined).join(' ');
  await confirmed(run, `Revoking ${named}`, named);
  const body = { user_id, client_id, token_id, issued_before, reason };
  const receipt = await relay.read('/revocations', { method: 'POST', body, repeatable: false });
  io.print(objectText(receipt, output, { id: ['revocation.revocation_id'] }));
  const silent = Array.isArray(receipt['silent']) ? receipt['silent'] : [];
  if (silent.length === 0) return EXIT.done;
  io.complain(`These nodes did not answer, and may still accept what is revoked: ${silent.join(', ')}\n`);
  return EXIT.failed;
};

export const revocationsLs = listing('/revocations', {
  shown: ['revocation_id', 'user_id', 'client_id', 'token_id', 'issued_before', 'who', 'at', 'reason'],
  id: ['revocation_id'],
});
