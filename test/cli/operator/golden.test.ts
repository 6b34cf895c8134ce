/**
 * Compares the whole output of each operator's command in each form with the files in `golden/`. `npm run golden`
 * writes these files again; read the difference before you commit it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Verb } from '../../../src/cli/verb.ts';
import { VERBS } from '../../../src/cli/verbs.ts';
import { VERSION } from '../../../src/version.ts';
import { ADMIN } from '../../http/kit/http-relay.ts';
import {
  ARGUMENTS,
  callOnce,
  changeActions,
  EVENTS,
  LAST,
  repeated,
  startGoldenRelay,
  type GoldenRelay,
} from './kit/golden-relay.ts';
import { operatorOf, type Ended } from './kit/operator.ts';

const FORMS = ['table', 'json', 'jsonl', 'ids'];
/** Matches the ids of calls that are made repeatedly until an event arrives. */
const REPEATED = /\bt\d{4}\b/g;
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

const config = mkdtempSync(join(tmpdir(), 'callboard-golden-'));
afterAll(() => rmSync(config, { recursive: true, force: true }));

/** Returns the text of a run, with names in place of ids, ports and folders, which differ from run to run. */
function shown(line: string, { code, out, err }: Ended, url: string): string {
  const words = `$ callboard ${line}\n${out}${err && `stderr: ${err}`}exit ${code}\n`;
  return (
    words
      .replaceAll(url, 'http://relay')
      .replaceAll(config, '/home/operator/.config')
      .replaceAll(VERSION, '1.2.3')
      .replaceAll(REPEATED, 't0001')
      // These counters include calls that are made until an event arrives. The number of such calls differs from run to
      // run.
      .replaceAll(/(counters"?:? *)\[.*?\]/g, '$1[]')
      // These are figures of the process that runs the tests. Columns of a table are as wide as their widest text.
      .replaceAll(/(?<name>memory_bytes"?:? *)\d+/g, '$<name>80000000')
      .replaceAll(/(?<name>event_loop_delay_ms"?:? *)(?:[\d.]+|null|-)/g, '$<name>1.5')
      .replaceAll(/\d+ MB +(?:[\d.]+ ms|-) +/g, '80 MB   1.5 ms      ')
      .replaceAll(/MEMORY +LOOP_DELAY +/g, 'MEMORY  LOOP_DELAY  ')
      .replaceAll(UUID, '00000000-0000-0000-0000-000000000000')
  );
}

describe('the output', () => {
  let golden: GoldenRelay;
  beforeAll(async () => {
    golden = await startGoldenRelay();
  });
  afterAll(() => golden[Symbol.asyncDispose]());

  const others = VERBS.filter(({ name }) => !EVENTS.includes(name) && !LAST.includes(name));
  const last = LAST.flatMap((name) => VERBS.find((verb) => verb.name === name) ?? []);

  async function compare({ name, output }: Verb): Promise<void> {
    const { relay } = golden;
    const run = operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: ADMIN, XDG_CONFIG_HOME: config });
    const given = [name, ARGUMENTS[name] ?? ''].join(' ').trim();
    let text = '';
    for (const form of output === false ? [null] : FORMS) {
      const line = form === null ? given : `${given} -o ${form}`;
      text += shown(line, await run(line.split(' '), { clock: relay.clock }), relay.url);
    }
    expect(text).not.toContain(ADMIN);
    await expect(text).toMatchFileSnapshot(`golden/${name.replaceAll(' ', '-')}.txt`);
  }

  it.each(others.map((verb) => [verb.name, verb]))('of %s', (_, verb) => compare(verb));

  it.each([
    ['calls tail', callOnce],
    ['clients watch', changeActions],
  ] as const)('of %s', async (name, act) => {
    const { relay } = golden;
    const run = operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: ADMIN });
    let text = '';
    for (const form of FORMS) {
      const line = `${name} ${ARGUMENTS[name]} -o ${form}`;
      const ended = await repeated(run(line.split(' ')), () => act(golden));
      text += shown(line, ended, relay.url);
    }
    await expect(text).toMatchFileSnapshot(`golden/${name.replaceAll(' ', '-')}.txt`);
  });

  it('of a call that prints its progress', async () => {
    const { relay, desk } = golden;
    const run = operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: ADMIN });
    let text = '';
    for (const form of FORMS) {
      const line = `call alice/desk lamp.set --id p-${form} --progress -o ${form}`;
      const running = run(line.split(' '), { clock: relay.clock });
      const { command_id } = await desk.next('command');
      desk.send({ type: 'progress', command_id, number: 1 }, { done: 1, of: 3 });
      desk.send({ type: 'progress', command_id, number: 3 }, 'two\nlines, turned \u202e');
      desk.send({ type: 'progress', command_id }, null);
      desk.send({ type: 'result', command_id }, 'done');
      text += shown(line, await running, relay.url);
    }
    await expect(text).toMatchFileSnapshot('golden/call-progress.txt');
  });

  it.each(last.map((verb) => [verb.name, verb]))('of %s', (_, verb) => compare(verb));

  it('of no verb is missing', () => {
    const covered = new Set([...others, ...last].map(({ name }) => name).concat(EVENTS));
    expect(VERBS.filter(({ name }) => !covered.has(name))).toEqual([]);
  });
});
