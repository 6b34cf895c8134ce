/** Tests that each state of a call and of a client has its own sentence, which says nothing that is not known there. */
import { describe, expect, it, vi } from 'vitest';
import {
  awaySentence,
  callSentence,
  executionText,
  isUnstable,
  unstableText,
  type CallFacts,
} from '../../src/console/pages/states.ts';

// The words follow the settings of the tab, whose events there are none of here.
vi.hoisted(() => vi.stubGlobal('addEventListener', () => undefined));

const AT = '2026-11-28T17:43:51.000Z';
const LIVE: NonNullable<CallFacts['delivery']> = {
  ...{ stage: 'ADMITTED', execution: 'NOT_WRITTEN', connectDeadline: AT, reason: null },
  ...{ queuedAt: null, dispatchedAt: null },
};
const QUEUED = { ...LIVE, stage: 'QUEUED', queuedAt: AT } as const;
const SENT = { ...QUEUED, stage: 'DISPATCHED', execution: 'MAY_HAVE_RUN', dispatchedAt: AT } as const;
const RECEIVED = { ...SENT, stage: 'ACKNOWLEDGED' } as const;
const ENDED = { ...RECEIVED, stage: 'TERMINAL', execution: 'REPORTED_BY_CLIENT' } as const;

const SENTENCES: readonly (readonly [string, Omit<CallFacts, 'clientId'>, string])[] = [
  ['without a record', { outcome: 'COMPLETED', delivery: null }, 'Its record is no longer kept.'],
  [
    'that waits for its client',
    { outcome: null, delivery: LIVE },
    'expires at 17:43:51 UTC unless till connects. Nothing has been written yet.',
  ],
  ['that is queued', { outcome: null, delivery: QUEUED }, 'Nothing has been written yet.'],
  ['that is written', { outcome: null, delivery: SENT }, 'That proves neither receipt nor execution.'],
  ['that was received', { outcome: null, delivery: RECEIVED }, 'starts its handler. Nothing later is proven.'],
  ['that reports progress', { outcome: null, delivery: RECEIVED, reports: 2 }, 'It runs, as till reports.'],
  ['that completed', { outcome: 'COMPLETED', delivery: ENDED }, 'till reported that it completed.'],
  ['that failed', { outcome: 'FAILED', delivery: ENDED }, 'till reported that it failed.'],
  [
    'that was refused',
    { outcome: 'FAILED', delivery: { ...ENDED, execution: 'REFUSED_BY_CLIENT' } },
    'refused it and did not run it.',
  ],
  ['that was cancelled before', { outcome: 'CANCELLED', delivery: LIVE }, 'before anything was written'],
  ['that was cancelled after', { outcome: 'CANCELLED', delivery: ENDED }, 'after it was written'],
  [
    'whose client stayed away',
    { outcome: 'EXPIRED', delivery: { ...LIVE, stage: 'TERMINAL' } },
    'till did not connect by 17:43:51 UTC. Nothing was written to a client, so it did not run.',
  ],
  [
    'that waited in the queue',
    { outcome: 'EXPIRED', delivery: { ...QUEUED, stage: 'TERMINAL' } },
    'Nothing was written to a client, so it did not run.',
  ],
  [
    'whose end is unknown',
    { outcome: 'OUTCOME_UNKNOWN', delivery: { ...SENT, stage: 'TERMINAL' } },
    'at 17:43:51 UTC. Then it had no answer.',
  ],
];

describe('the sentence of a call', () => {
  it.each(SENTENCES)('%s', (_, facts, text) => expect(callSentence({ clientId: 'till', ...facts })).toContain(text));

  it('never says that a call did not run while it may still be written', () => {
    for (const [, facts] of SENTENCES)
      if (facts.outcome === null) expect(callSentence({ clientId: 'till', ...facts })).not.toContain('did not run');
    expect(executionText('NOT_WRITTEN', false)).toBe('Nothing has been written yet');
    expect(executionText('NOT_WRITTEN', true)).toBe('Did not run: it was never written to a client');
  });

  it('is another one in each state', () => {
    const all = SENTENCES.map(([, facts]) => callSentence({ clientId: 'till', ...facts }));
    expect(new Set(all).size).toBe(SENTENCES.length);
  });
});

it('a client that was never seen has no link of which anything is known', () => {
  expect(awaySentence({ links: 0, calls: 1, waiting: 1 })).toBe('No link of it is known. One call waits for it.');
  expect(awaySentence({ links: 0, calls: 3, waiting: 2 })).toBe('No link of it is known. 2 calls wait for it.');
  expect(awaySentence({ links: 0, calls: 3, waiting: 0 })).toBe('No link of it is known. Calls to it are.');
  expect(awaySentence({ links: 2, calls: 0, waiting: 0 })).toContain('Its links are still known.');
});

it('a client that reconnects often is unstable, and why its last link ended is said', () => {
  expect([0, 5, 6, 29].map(isUnstable)).toEqual([false, false, true, true]);
  expect(unstableText(29, 'RESET')).toBe(
    'Its link opened again 29 times in the last hour; its last link ended because its socket was reset.',
  );
  expect(unstableText(7, null)).toBe('Its link opened again 7 times in the last hour.');
});
