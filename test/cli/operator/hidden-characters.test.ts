/**
 * Tests that no verb of the command line writes a character that steers a terminal or hides: in each form, for each text
 * that a client chooses.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERBS } from '../../../src/cli/verbs.ts';
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

/** An escape, a control sequence of C1, DEL, an override, an isolate, a space without width, a tag, a separator. */
const HIDDEN = '\nforged line\u001b[2J\u009b2J\u007f\u202e\u2066\u061c\u200b\u200f\u{e0041}\u2028\ufeff';
/** Matches what must not be written. It is spelled out, so that it does not depend on the code under test. */
const STEERS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\udb40/;
const FORMS = ['table', 'json', 'jsonl', 'ids'] as const;

let golden: GoldenRelay;
const config = mkdtempSync(join(tmpdir(), 'callboard-hidden-'));
beforeAll(async () => void (golden = await startGoldenRelay(HIDDEN)));
afterAll(async () => {
  rmSync(config, { recursive: true, force: true });
  await golden?.[Symbol.asyncDispose]();
});

const operator = () => operatorOf({ CALLBOARD_URL: golden.relay.url, CALLBOARD_TOKEN: ADMIN, XDG_CONFIG_HOME: config });

async function ran(name: string, form: string | null): Promise<Ended> {
  const words = `${name} ${ARGUMENTS[name] ?? ''}${form === null ? '' : ` -o ${form}`}`.trim().split(/ +/);
  const running = operator()(words, { clock: golden.relay.clock });
  if (name === 'calls tail') return repeated(running, () => callOnce(golden));
  if (name === 'clients watch') return repeated(running, () => changeActions(golden));
  return running;
}

/** The verbs whose answers contain a text of a client, and the number of such texts in one answer, at least. */
const WITH_TEXTS = [
  ...['clients get', 'clients actions', 'actions ls', 'sites ls', 'sites get'],
  ...['calls get', 'call', 'users get'],
];

describe('no output has a character that steers a terminal or hides', () => {
  const order = [...VERBS].sort((a, b) => LAST.indexOf(a.name) - LAST.indexOf(b.name));
  it.each(order.map((verb) => [verb.name, verb]))('of %s', async (name, { output }) => {
    for (const form of output === false ? [null] : FORMS) {
      const { out, err } = await ran(name, form);
      expect([form, STEERS.exec(out), STEERS.exec(err)]).toEqual([form, null, null]);
      if (form === 'json' && WITH_TEXTS.includes(name))
        expect(JSON.stringify(JSON.parse(out))).toContain(HIDDEN.slice(-2));
      if (form === 'table' && ['clients actions', 'sites get', 'calls get'].includes(name))
        expect(out).toContain(
          'forged line\\u001b[2J\\u009b2J\\u007f\\u202e\\u2066\\u061c\\u200b\\u200f\\udb40\\udc41\\u2028\\ufeff',
        );
    }
  });

  it('of each verb with events', () => {
    expect(EVENTS.every((name) => VERBS.some((verb) => verb.name === name))).toBe(true);
  });

  it.each(FORMS)('of an error, as %s', async (form) => {
    const { err } = await operator()(['clients', 'get', `no\n${HIDDEN}`, '-o', form]);
    expect(STEERS.exec(err)).toBeNull();
    expect(err.trimEnd().split('\n')).toHaveLength(1);
    expect(err).toContain('\\u202e');
  });

  it('of wrong usage, and of the completion of a word', async () => {
    const usage = await operator()(['clients', 'ls', `--${HIDDEN}`]);
    const command = await operator()([HIDDEN]);
    const completion = await operator()(['__complete', 'clients', HIDDEN]);
    for (const { out, err } of [usage, command, completion])
      expect([STEERS.exec(out), STEERS.exec(err)]).toEqual([null, null]);
    expect(usage.err + command.err).toContain('\\u202e');
  });
});
