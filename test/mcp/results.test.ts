/** Tests who is said to have written the message of a failed call. */
import { expect, it } from 'vitest';
import { endedInvocation, invocation, type Invocation } from '../../src/core/calls/call.ts';
import type { Command } from '../../src/core/commands/command.ts';
import { answerOf } from '../../src/mcp/results.ts';
import { PLAIN_NAMES } from '../../src/mcp/tool-arguments.ts';
import { command } from '../graphql/kit/rows.ts';

const KEY = { userId: 'ann', clientId: 'c1', commandId: 'k1' };

function firstLine(answer: Invocation): string {
  if (answer.kind === 'refused') throw new Error('No call of this file is refused.');
  const about = { ...KEY, attachedTo: null, ranBeside: null, now: 0, names: PLAIN_NAMES };
  return answerOf(answer, about).content[0]!.text.split('\n')[0]!;
}

const ended = (more: Partial<Command>): Invocation =>
  invocation(command({ stage: 'terminal', terminalAt: 1, ...more }), null, null);

it('quotes the message of an end that the client reported', () => {
  const error = { code: 'handler_failed', message: 'The bulb is broken.' };
  const answer = ended({ outcome: 'failed', execution: 'reported_by_client', error });
  expect(firstLine(answer)).toBe('handler_failed: the client says: "The bulb is broken."');
});

it('does not say that the client wrote what the relay wrote of an end, even if the client reported another end later', () => {
  const error = { code: 'response_timeout', message: 'The client reported no end.' };
  const answer = ended({ outcome: 'outcome_unknown', execution: 'may_have_run', error, lateResults: 1 });
  expect(firstLine(answer)).toBe('response_timeout: The client reported no end.');
});

it('does not say that the client wrote that a result or a record is no longer kept', () => {
  const expired = 'result_expired: The result is no longer retained.';
  const end = { outcome: 'completed', execution: 'reported_by_client', resultExpired: true } as const;
  expect(firstLine(ended(end))).toBe(expired);
  expect(firstLine(endedInvocation(KEY, { ...end, errorCode: null, endedAt: 1 }))).toBe(expired);
});

it('does not say that the client wrote the message that stands for one which is no longer kept', () => {
  const end = { outcome: 'expired', execution: 'not_written', errorCode: 'connect_timeout' } as const;
  const answer = endedInvocation(KEY, { ...end, endedAt: 1, resultExpired: false });
  expect(firstLine(answer)).toMatch(/^connect_timeout: The client did not connect in time/);
});
