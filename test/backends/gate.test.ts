/** Tests the gate below every byte: what may leave the process, in which order, and what a loss destroys. */
import { describe, expect, it } from 'vitest';
import { Gate } from '../../src/backends/journal/gate.ts';

describe('a gate', () => {
  it('lets through at once what is recorded, and the rest in order once it is', () => {
    const gate = new Gate();
    const out: string[] = [];
    gate.pass(0, () => out.push('a'));
    gate.pass(2, () => out.push('c'));
    gate.pass(1, () => out.push('d'));
    expect(out).toEqual(['a']);
    gate.open(1);
    expect(out).toEqual(['a']);
    gate.open(2);
    expect(out).toEqual(['a', 'c', 'd']);
  });

  it('runs what comes while it opens after what waited before', () => {
    const gate = new Gate();
    const out: string[] = [];
    gate.pass(1, () => {
      gate.pass(1, () => out.push('third'));
      out.push('first');
    });
    gate.pass(1, () => out.push('second'));
    gate.open(1);
    expect(out).toEqual(['first', 'second', 'third']);
  });

  it('destroys what waits after a loss, and lets through what is decided and recorded later', () => {
    const gate = new Gate();
    const out: string[] = [];
    const holder = (name: string) => ({ destroy: () => void out.push(`destroyed ${name}`) });
    gate.pass(1, () => out.push('a'), holder('a'));
    gate.pass(2, () => out.push('b'));
    gate.lose();
    gate.open(2);
    gate.pass(3, () => out.push('c'), holder('c'));
    gate.open(3);
    expect(out).toEqual(['destroyed a', 'c']);
  });

  it('lets everything through once it is closed, and nothing once it has failed', () => {
    const [closed, failed] = [new Gate(), new Gate()];
    const out: string[] = [];
    for (const [name, gate] of [
      ['closed', closed],
      ['failed', failed],
    ] as const)
      gate.pass(1, () => out.push(name));
    failed.fail();
    closed.close();
    for (const [name, gate] of [
      ['late', closed],
      ['failed', failed],
    ] as const)
      gate.pass(9, () => out.push(name));
    failed.close();
    expect(out).toEqual(['closed', 'late']);
  });
});
