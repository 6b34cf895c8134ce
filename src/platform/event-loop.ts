/** Implements core's EventLoop with Node's. */
import { performance } from 'node:perf_hooks';
import type { EventLoop } from '../core/event-loop.ts';

/**
 * Node accepts one new connection in each turn of its loop. So work that steps back waits for several turns: with one
 * turn, connections would be accepted no faster than the work is done, and requests that are ready would wait for it.
 */
const TURNS = 32;
/** Turns in which much is done are not waited for, in milliseconds: the work must go on too. */
const WAIT_MS = 5;

export const systemLoop: EventLoop = {
  afterOthers(run) {
    const began = performance.now();
    let left = TURNS;
    const turn = (): void => {
      if (--left === 0 || performance.now() - began >= WAIT_MS) run();
      else setImmediate(turn);
    };
    setImmediate(turn);
  },
};
