/** Tests the cost mode of the fuzzer: it finds and grows what is dear, and its judge refuses it. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { PROBED } from '../../faults/lib/cost-probe.ts';
import { startChild } from '../../faults/lib/child.ts';
import { BOUNDS, dearness, medianOf, type Cost, type CostInput, type CostKind } from '../../faults/fuzz/cost/cost.ts';
import { documentBody, drawDocument, growDocument, rootFields } from '../../faults/fuzz/cost/document-kinds.ts';
import { drawJson, growJson, jsonOf } from '../../faults/fuzz/json-text.ts';
import { costFaults, costTable, type Finalist, REPETITIONS, searchDearest } from '../../faults/fuzz/cost/search.ts';
import { measureInput, type Probe } from '../../faults/fuzz/cost/cost-target.ts';
import { Draw } from '../../faults/lib/random.ts';

const CHEAP: Cost = { turnMs: 1, cpuMs: 2, scriptMs: 0, redisMs: 0, script: '', answer: '200' };

/** A kind whose inputs have a size that grows. `send` gets the size. */
function growing(name: string, send: (size: number) => Promise<string>, most: number): CostKind {
  const input = (size: number): CostInput => ({
    prepare: async () => () => send(size),
    finish: async () => {},
    mutate: () => input(Math.min(most, size * 8)),
    show: () => `${name} ${size}`,
  });
  return { family: 'requests', name, sender: 'user', draw: () => input(1) };
}

const sizeOf = (input: CostInput): number => Number(input.show().split(' ')[1]);
const finalist = (cost: Partial<Cost>, sender: 'user' | 'admin' = 'user'): Finalist => ({
  kind: { ...growing('planted', async () => '', 1), sender },
  input: growing('planted', async () => '', 1).draw(new Draw(1, 'x', 0)),
  cost: { ...CHEAP, ...cost },
});

describe('the search', () => {
  test('grows the input that costs more with its size, and measures it again by the median', async () => {
    let sent = 0;
    const measured: string[] = [];
    const nothing = async (): Promise<string> => '200';
    const kinds = [growing('flat', nothing, 4_096), growing('steep', nothing, 4_096)];
    const finalists = await searchDearest({
      ...{ seed: 1, kinds },
      async measure(input) {
        sent++;
        measured.push(input.show());
        return { ...CHEAP, cpuMs: input.show().startsWith('steep') ? sizeOf(input) / 10 : 2 };
      },
      progress: () => sent / 300,
    });
    expect(finalists.map(({ kind, input }) => [kind.name, kind.name === 'steep' ? sizeOf(input) : 0])).toEqual([
      ['steep', 4_096],
      ['flat', 0],
    ]);
    expect(measured.filter((one) => one === 'steep 4096').length).toBeGreaterThan(REPETITIONS);
  });

  test('does not take an input that was dear only once for the dearest', async () => {
    const kind = growing('noisy', async () => '200', 64);
    let sent = 0;
    const finalists = await searchDearest({
      ...{ seed: 2, kinds: [kind] },
      measure: async () => ({ ...CHEAP, cpuMs: sent++ === 10 ? 5_000 : 2 }),
      progress: () => sent / 60,
    });
    expect(finalists.map(({ cost }) => cost.cpuMs)).toEqual([2]);
  });

  test('leaves out a kind that its sender may not use', async () => {
    let sent = 0;
    const finalists = await searchDearest({
      ...{ seed: 3, kinds: [growing('secret', async () => '', 64)] },
      measure: async () => ({ ...CHEAP, answer: sent++ < 1_000 ? 'forbidden' : '200' }),
      progress: () => sent / 60,
    });
    expect(finalists).toEqual([]);
  });
});

test('a handler that burns CPU is found in its process, and the judge refuses it', async () => {
  await using child = await startChild(new URL('kit/dear-process.ts', import.meta.url).pathname);
  const { port } = await child.ask('at', null, z.object({ port: z.number() }));
  const get = (path: string) => async (): Promise<string> =>
    String((await fetch(`http://127.0.0.1:${port}${path}`)).status);
  const probe: Probe = {
    costBegin: async () => void (await child.ask('costBegin', null, z.null())),
    costEnd: (withinMs) => child.ask('costEnd', { withinMs }, PROBED),
  };
  const kinds = [
    growing('burning', (ms) => get(`/burn?${ms}`)(), 256),
    growing('harmless', (ms) => get(`/harmless?${ms}`)(), 256),
  ];
  let sent = 0;
  const finalists = await searchDearest({
    ...{ seed: 1, kinds },
    async measure(input) {
      sent++;
      return measureInput(input, probe, null);
    },
    progress: () => sent / 60,
  });
  const [dearest] = finalists;
  expect(dearest?.kind.name).toBe('burning');
  expect(dearest?.cost.turnMs).toBeGreaterThan(BOUNDS.user.turnMs);
  const faults = costFaults(finalists).join();
  expect(faults).toMatch(/requests: burning \(user\): a turn of/);
  expect(faults).toMatch(/requests: burning \(user\): \d+ ms of CPU/);
});

describe('the judge of costs', () => {
  test.each<[string, Partial<Cost>, RegExp]>([
    ['a turn', { turnMs: 51 }, /a turn of 51 ms, at most 50 ms/],
    ['CPU', { cpuMs: 201 }, /201 ms of CPU, at most 200 ms/],
    ['a script', { scriptMs: 21, script: 'evalsha x' }, /evalsha x took 21 ms, at most 20 ms/],
  ])('refuses %s above its bound', (_what, cost, fault) => {
    expect(costFaults([finalist({}), finalist(cost)])).toEqual([expect.stringMatching(fault)]);
    expect(dearness({ ...CHEAP, ...cost }, 'user')).toBeGreaterThan(1);
  });

  test('accepts what is at its bounds, and a longer turn for an administrator', () => {
    expect(costFaults([finalist({ turnMs: 50, cpuMs: 200, scriptMs: 20 }), finalist({ turnMs: 99 }, 'admin')])).toEqual(
      [],
    );
    expect(costFaults([finalist({ turnMs: 101 }, 'admin')])).toHaveLength(1);
  });

  test('refuses a run that measured nothing', () => {
    expect(costFaults([])).toEqual([expect.stringContaining('proves nothing')]);
  });

  test('takes the median of each figure', () => {
    const costs = [1, 9, 3, 900, 2].map((cpuMs, i) => ({ ...CHEAP, cpuMs, turnMs: i }));
    expect(medianOf(costs)).toMatchObject({ cpuMs: 3, turnMs: 2 });
  });

  test('writes a row for each kind', () => {
    const [, , row] = costTable('direct', [finalist({ cpuMs: 12 })], 5).split('\n');
    expect(row).toBe('| direct | `planted` | user | 1.0 ms | 12 ms | - | - | 200 | `planted 1` |');
  });
});

describe('the inputs', () => {
  const known = (): string => 'known';

  test('are documents for each root field, and their mutants grow', () => {
    const longest = rootFields('query').map((field) => {
      const draw = new Draw(1, field, 0);
      let gene = drawDocument(draw, { operation: 'query', field, known });
      const first = documentBody(gene).length;
      let most = first;
      for (let n = 0; n < 16; n++) {
        gene = growDocument(draw, gene, known);
        most = Math.max(most, documentBody(gene).length);
      }
      return most / first;
    });
    expect(longest.length).toBeGreaterThan(20);
    expect(Math.min(...longest)).toBeGreaterThan(1.2);
  });

  test('are JSON texts that can be parsed and that grow up to the limit of a body', () => {
    const draw = new Draw(1, 'json', 0);
    let gene = drawJson(draw);
    for (let n = 0; n < 20; n++) gene = growJson(draw, gene);
    expect(gene.bytes).toBeGreaterThan(1_000_000);
    expect(jsonOf(gene).length).toBeLessThan(1024 * 1024);
  });
});
