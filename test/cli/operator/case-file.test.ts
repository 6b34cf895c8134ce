/** Tests the page that `calls get` prints about a call whose end is unknown, and about one that has not ended. */
import { expect, it } from 'vitest';
import { caseFileText, type CaseFile } from '../../../src/cli/run/case-file.ts';

const AT = '2026-01-31T23:59:59.000Z';
const IDS = { user_id: 'alice', client_id: 'desk', command_id: 'c1', action: 'door.open' };
const COMPLETE = { complete: true, sources: [] };
const DELIVERY: NonNullable<CaseFile['delivery']> = {
  ...IDS,
  ...{ client_type: 'console', scope_id: 'alice', stage: 'dispatched', outcome: null, last_proven_stage: 'dispatched' },
  ...{
    context_id: null,
    execution: 'may_have_run',
    attempts: 1,
    admitted_at: AT,
    queued_at: AT,
    acknowledged_at: null,
  },
  ...{ dispatched_at: '2026-01-31T23:59:59.250Z', terminal_at: null, duration_ms: null, node_id: 'node-a' },
  ...{ connect_deadline: '2026-02-01T00:00:09.000Z', deadline: '2026-02-01T00:00:29.000Z' },
  ...{ bound_instance_id: 'i1', recovered_from_node_id: null },
  ...{ cancel_requested_at: null, late_results: 0, first_late_at: null, code: null, message: null, reason: null },
  caller: { kind: 'admin', name: 'lena', program: null },
};
const RUNNING: CaseFile = {
  ...{ ...IDS, outcome: null, error: null, delivery: DELIVERY, sightings: [] },
  waiters: [
    {
      ...{ rpc_id: 'r1', wait_for: 'completed', caller: { kind: 'user', name: 'alice' } },
      ...{ age_ms: 1500, times_out_at: DELIVERY.deadline },
    },
  ],
  history: { items: [], next_cursor: null, completeness: COMPLETE },
};

it('says of a call that runs what is proven, and who waits', () => {
  expect(caseFileText(RUNNING)).toBe(`door.open of alice/desk, call c1
Not ended: dispatched, with the deadline 2026-02-01T00:00:29.000Z.

What is proven (2026-01-31, UTC)
 23:59:59.000           admitted    called by admin lena; counted in the scope alice
 23:59:59.000           queued      for the link of desk on node-a
 23:59:59.250  +250 ms  dispatched  to instance i1 of desk, attempt 1; the write began, which proves no receipt

Callers that wait
 user alice  for its end  since 1.5 s  until 2026-02-01T00:00:29.000Z  r1

No message of it is retained.
`);
});

it('says of a call that waits for its client when it expires, and not when its answer would be late', () => {
  const delivery = { ...DELIVERY, stage: 'admitted', queued_at: null, dispatched_at: null } as const;
  expect(caseFileText({ ...RUNNING, delivery })).toContain(
    'Not ended: admitted. It expires at 2026-02-01T00:00:09.000Z unless desk connects.\n',
  );
});

it('says of a call that was cancelled before it was sent that nothing was written', () => {
  const at = '2026-01-31T23:59:59.500Z';
  const delivery = { ...DELIVERY, dispatched_at: null, terminal_at: at, cancel_requested_at: at };
  const text = caseFileText({ ...RUNNING, outcome: 'cancelled', delivery });
  expect(text.match(/(cancellation requested|cancelled)( .*)?$/gm)).toEqual([
    'cancellation requested  nothing had been written to the client',
    'cancelled',
  ]);
});

it('shows what is not proven about an unknown end, and a late result after it', () => {
  const late = { message_id: 'c1:late', at: '2026-02-01T00:01:00.000Z', kind: 'late_result', stream: 's' } as const;
  const text = caseFileText({
    ...RUNNING,
    ...{ outcome: 'outcome_unknown', error: { code: 'response_timeout', message: 'No\nanswer' }, waiters: [] },
    delivery: { ...DELIVERY, terminal_at: DELIVERY.deadline, duration_ms: 30_000, reason: 'response_timeout' },
    sightings: [{ message_id: 'c1:late', count: 2, first_seen_at: late.at, last_seen_at: late.at }],
    history: { items: [{ ...late, payload_bytes: 9, error: null }], next_cursor: null, completeness: COMPLETE },
  });
  expect(text).toContain('Ended with an unknown outcome after 30.0 s: No answer came before the deadline.\n');
  expect(text).toContain(String.raw`response_timeout: No\u000aanswer`);
  const entries = text.slice(text.indexOf('What is proven'), text.indexOf('No caller'));
  expect(entries.match(/(not acknowledged|outcome unknown|late result) .*/g)).toEqual([
    'not acknowledged  desk never said that it received it',
    'outcome unknown   the command may have run',
    "late result       too late to end the call; kept as the client's word, seen 2 times",
  ]);
  expect(entries).toContain(' 2026-02-01 00:01:00.000  +1 m 1 s ');
  expect(text.trimEnd().split('\n').at(-1)).toBe('A new call has a new id, so door.open may then run twice.');
});
