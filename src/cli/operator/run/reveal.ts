/** Runs the verb `calls reveal`, which shows one payload after the operator gave a reason for the audit. */
import { RevealPayloadDocument } from '../../../generated/cli.ts';
import { accepted, usageFailure } from '../failure.ts';
import { objectText } from '../output.ts';
import { readAddress } from '../params.ts';
import type { RunVerb } from '../verb.ts';

const SUBJECTS = { params: 'command_params', result: 'command_result', message: 'message' } as const;

export const callsReveal: RunVerb = async ({ relay, args, io, output, flags }) => {
  const [user_id, client_id, command_id] = readAddress(args[0] ?? '', 3);
  const { reason, message: message_id } = flags;
  if (reason === undefined) throw usageFailure('--reason: say why the payload is looked at');
  const named = flags['subject'] ?? (message_id === undefined ? 'result' : 'message');
  const subject = Object.entries(SUBJECTS).find(([name]) => name === named)?.[1] ?? 'command_result';
  if ((subject === 'message') !== (message_id !== undefined))
    throw usageFailure('--message: names the message of the subject message, and of no other');
  const of = subject === 'message' ? { message_id } : { client_id, command_id };
  // The audit has a row for each reveal, so a request whose connection breaks is not sent again.
  const variables = { user_id, subject, reason, ...of };
  const { revealPayload } = await relay.query(RevealPayloadDocument, variables, { repeatable: false });
  io.print(objectText(accepted(revealPayload), output, { id: ['digest'] }));
};
