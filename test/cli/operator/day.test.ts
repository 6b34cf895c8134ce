/**
 * Tests "The operator's day" of docs/operating.md: each command of its table is run as written, and must answer its
 * question.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADMIN } from '../../http/kit/http-relay.ts';
import { until } from '../../relay/kit/test-relay.ts';
import { startGoldenRelay, type GoldenRelay } from './kit/golden-relay.ts';
import { operatorOf } from './kit/operator.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/operating.md'), 'utf8');
const ROWS = [...PAGE.matchAll(/^\| ([^|]+?\?) +\| (`callboard [^|]+?) +\|$/gm)].map(
  ([, question = '', cell = '']) => ({
    question,
    lines: [...cell.matchAll(/`callboard ([^`]+)`/g)].map(([, line = '']) => line),
  }),
);

/** The expected output of the last command of each question, by question. */
const ANSWERS: Readonly<Record<string, RegExp>> = {
  'Does anything need a person?': /^needs attention +(nothing|\d)/m,
  'Who is connected?': /^alice +desk +connected +browser /m,
  'Who has waited over ten seconds?': /^alice +desk +c3 +lamp\.set +alice +dispatched +\d{5} /m,
  'What failed last, and why did one call fail?': /^handler_failed: The lamp is gone\.$/m,
  'What fails most, and on which node?': /^\S+ +1 +1 +\S+ +alice +desk +c2$/m,
  'Why did the call with this id of a log fail?': /^handler_failed: The lamp is gone\.$/m,
  'Which client flaps?': /^alice +phone +1 +connected /m,
  'What is retained for a user, and in one stream?': /^\S+ +error +\S+ +desk +c2 +/m,
  'How many calls a second, and how slow is p99?':
    /^calls +in progress \d+, ended per second [\d.]+\n.*\n?duration +p50 \d+.* ms, p99 \d+/m,
  'What would refuse this call?': /^policy +pass /m,
  'Who looked at this payload?': /^1 +\S+ +admin:\S+ +reveal +revealed +result of alice\/desk\/c1 +ticket 4711$/m,
  'Why can I not reach the relay?': /^token +ok +an administrator/m,
};

describe("the operator's day", () => {
  let golden: GoldenRelay;
  beforeAll(async () => {
    golden = await startGoldenRelay();
    const { relay } = golden;
    const phone = { client_id: 'phone', instance_id: 'p1' };
    (await relay.client(phone)).ws.terminate();
    await until(async () => (await relay.data(PHONE))['connection'].status !== 'CONNECTED');
    await relay.client(phone);
    await relay.clock.advance(11_000);
  });
  afterAll(() => golden[Symbol.asyncDispose]());

  it('has an answer for each question', () => {
    expect(ROWS.map(({ question }) => question)).toEqual(Object.keys(ANSWERS));
    expect(Math.max(...ROWS.map(({ lines }) => lines.length))).toBe(2);
  });

  it.each(ROWS)('$question', async ({ question, lines }) => {
    const { relay } = golden;
    const run = operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: ADMIN });
    if (question.startsWith('Who looked'))
      await run(['calls', 'reveal', 'alice/desk/c1', '--reason', 'ticket 4711'], { clock: relay.clock });
    const outs: string[] = [];
    for (const line of lines) {
      const { out } = await run(line.split(' '), { clock: relay.clock });
      outs.push(out);
    }
    expect(outs.at(-1)).toMatch(ANSWERS[question] ?? /never/);
  });
});

const PHONE = '{ connection(userId: "alice", clientId: "phone") { status } }';
