/** Tests how the programs of faults/ answer wrong options. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { namesOf, positiveNumber, UsageError, wholeNumber } from '../../faults/lib/options.ts';

const ROOT = join(import.meta.dirname, '../..');

type Ended = { readonly code: number; readonly out: string; readonly err: string };

function run(program: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(ROOT, 'faults', program, 'run.ts'), ...args], (error, out, err) => {
      resolve({ code: Number(error?.code ?? 0), out, err });
    });
  });
}

describe('the options of a fault program', () => {
  it.each(['outages', 'fuzz', 'neighbours', 'soak', 'mutants', 'console'])('are explained by %s', async (program) => {
    const [asked, wrong] = await Promise.all([run(program, ['--help']), run(program, ['--sourse', 'src'])]);
    expect(asked).toEqual({ code: 0, out: expect.stringMatching(/^npm run /), err: '' });
    expect(wrong).toEqual({ code: 2, out: '', err: `Unknown option '--sourse'\n\n${asked.out}` });
  });

  it('are refused with what they take', async () => {
    const [plan, seed] = await Promise.all([run('outages', ['--plan', 'F99']), run('fuzz', ['--seed', 'x'])]);
    expect([plan.code, seed.code]).toEqual([2, 2]);
    expect(plan.err).toMatch(/^--plan has no "F99"\. It takes some of .*F1, F2/);
    expect(seed.err).toMatch(/^--seed takes a whole number, not "x"\.\n/);
  });

  it('are refused by neighbours if direct mode, which has no store, is to be filled', async () => {
    const { code, err } = await run('neighbours', ['--full-disk', '--mode', 'direct']);
    expect([code, err.split('\n')[0]]).toEqual([2, '--full-disk needs a mode with a store, not direct.']);
  });

  it('are read as numbers and names', () => {
    expect([wholeNumber('n', '0'), wholeNumber('n', '12'), positiveNumber('n', '0.5')]).toEqual([0, 12, 0.5]);
    for (const text of ['', '-1', '1.5', 'x']) expect(() => wholeNumber('n', text)).toThrow(UsageError);
    for (const text of ['', '0', '-1', 'x']) expect(() => positiveNumber('n', text)).toThrow(UsageError);
    expect(namesOf('n', undefined, ['a', 'b'])).toEqual(['a', 'b']);
    expect(namesOf('n', 'B', ['a', 'b'])).toEqual(['b']);
    expect(() => namesOf('n', 'a,c', ['a', 'b'])).toThrow(UsageError);
  });
});
