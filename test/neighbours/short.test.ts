/** Runs a short attack beside an honest user, with real processes. */
import { expect, test } from 'vitest';
import { runEpisode } from '../../faults/neighbours/episode.ts';
import { faultsOf } from '../../faults/neighbours/verdict.ts';

test.each([
  ['bad-tokens', 'direct'],
  ['quadratic-ids', 'direct'],
  ['many-commands', 'direct'],
  ['changing-advertisements', 'directory'],
] as const)(
  'an honest user and an operator beside %s (%s) are served, and keep their ids and rows',
  async (attack, mode) => {
    const episode = await runEpisode({ attack, mode, seconds: 5, aloneSeconds: 1 });
    expect(faultsOf(episode, { timing: false })).toEqual([]);
  },
);

test.each([
  ['large-results', 'directory'],
  ['many-commands', 'shared'],
] as const)(
  'an honest user beside %s (%s) reads while the store is full, and what runs ends and is recorded',
  async (attack, mode) => {
    const episode = await runEpisode({ attack, mode, seconds: 4, aloneSeconds: 1, isFilled: true });
    expect(faultsOf(episode, { timing: false })).toEqual([]);
  },
);
