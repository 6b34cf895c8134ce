/** Runs a short attack beside an honest user, with real processes. */
import { expect, test } from 'vitest';
import { runEpisode } from '../../faults/neighbours/episode.ts';
import { faultsOf } from '../../faults/neighbours/verdict.ts';

/** The timeout of a test in milliseconds. It covers the start of three processes on a busy machine. */
const LONG = 120_000;

test.each(['bad-tokens', 'quadratic-ids', 'many-commands'])(
  'an honest user and an operator beside %s are served, and keep their ids and rows',
  async (attack) => {
    const episode = await runEpisode({ attack, mode: 'direct', seconds: 5, aloneSeconds: 1 });
    expect(faultsOf(episode, { timing: false })).toEqual([]);
  },
  LONG,
);
