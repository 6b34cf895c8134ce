/** Tests that a check of arguments is bounded in time, and that only the latest text is reported. */
import { expect, it } from 'vitest';
import {
  CHECK_MS,
  createChecker,
  NO_CHECK,
  START_MS,
  syntaxFault,
  TOO_SLOW,
  type CheckEvents,
  type Checked,
  type ToWorker,
} from '../../src/console/invoke/checker.ts';

type Started = CheckEvents & { readonly sent: ToWorker[]; ended: boolean };

function checkerOf(schema: unknown = { type: 'object' }) {
  const workers: Started[] = [];
  const timers: { readonly ms: number; readonly run: () => void; cancelled: boolean }[] = [];
  const known: Checked[] = [];
  const checker = createChecker({
    schema,
    startWorker: (events) => {
      const started: Started = { ...events, sent: [], ended: false };
      workers.push(started);
      return { send: (message) => void started.sent.push(message), end: () => void (started.ended = true) };
    },
    after(ms, run) {
      const timer = { ms, run, cancelled: false };
      timers.push(timer);
      return () => void (timer.cancelled = true);
    },
    onChecked: (checked) => void known.push(checked),
  });
  return { checker, workers, timers, known };
}

const fault = (text: string) => ({ at: '', text, syntax: false });

it('gives the schema once, then each text, and reports its faults', () => {
  const { checker, workers, known } = checkerOf();
  checker.check('1');
  expect(workers.map(({ sent }) => sent)).toEqual([[{ schema: { type: 'object' } }]]);
  workers[0]?.onMessage('ready');
  workers[0]?.onMessage([fault('no')]);
  checker.check('{}');
  workers[0]?.onMessage([]);
  expect(workers[0]?.sent.slice(1)).toEqual([{ text: '1' }, { text: '{}' }]);
  expect(known.map(({ faults }) => faults.length)).toEqual([1, 0]);
});

it('ends a worker whose check exceeds the time, says so, and checks the next text with a new worker', () => {
  const { checker, workers, timers, known } = checkerOf();
  checker.check('"slow"');
  // The time to load the worker has a bound of its own.
  expect(timers.map(({ ms, cancelled }) => [ms, cancelled])).toEqual([[START_MS, false]]);
  workers[0]?.onMessage('ready');
  expect(timers.map(({ ms, cancelled }) => [ms, cancelled])).toEqual([
    [START_MS, true],
    [CHECK_MS, false],
  ]);
  timers[1]?.run();
  expect([workers[0]?.ended, known]).toEqual([true, [{ faults: [], unchecked: TOO_SLOW }]]);
  workers[0]?.onMessage([fault('too late')]);
  expect(known).toHaveLength(1);
  checker.check('"fast"');
  workers[1]?.onMessage('ready');
  workers[1]?.onMessage([]);
  expect(known.at(-1)).toEqual({ faults: [], unchecked: null });
  expect(timers.at(-1)?.cancelled).toBe(true);
});

it('checks only the latest of the texts that arrive during a check, also when that check never ends', () => {
  const { checker, workers, timers, known } = checkerOf();
  checker.check('1');
  workers[0]?.onMessage('ready');
  for (const text of ['2', '3', '4']) checker.check(text);
  workers[0]?.onMessage([fault('of 1')]);
  expect([workers[0]?.sent.at(-1), known]).toEqual([{ text: '4' }, []]);
  checker.check('5');
  timers.at(-1)?.run();
  expect([workers.length, known]).toEqual([2, []]);
  workers[1]?.onMessage('ready');
  expect(workers[1]?.sent.at(-1)).toEqual({ text: '5' });
});

it('says that nothing is checked if the worker cannot start, and reports nothing after it is closed', () => {
  const { checker, workers, known } = checkerOf();
  checker.check('1');
  workers[0]?.onError();
  expect(known).toEqual([{ faults: [], unchecked: NO_CHECK }]);
  checker.check('2');
  checker.close();
  workers[1]?.onMessage('ready');
  expect([workers[1]?.ended, known.length]).toEqual([true, 1]);
});

it('names the fault of a text that is not JSON', () => {
  expect([syntaxFault('{'), syntaxFault('{}')]).toMatchObject([{ at: '', syntax: true }, null]);
});

it('gives up a worker that does not start in time, and says that the text was not checked', () => {
  const { checker, workers, timers, known } = checkerOf();
  checker.check('1');
  timers[0]?.run();
  expect([workers[0]?.ended, known]).toEqual([true, [{ faults: [], unchecked: NO_CHECK }]]);
});
