/** Tests that records of a journal give back exactly what was written into them. */
import { describe, expect, it } from 'vitest';
import {
  ActWriter,
  Interned,
  NEW_COMMAND,
  NO_USER,
  applyDifference,
  differenceOf,
  readActs,
} from '../../src/backends/journal/records.ts';
import type { Command } from '../../src/core/commands/command.ts';
import { trustJson } from '../../src/core/json.ts';

const AT = 1_767_225_600_000;
const KEY = { userId: 'alice', clientId: 'tab', commandId: 'c1' };

/** Another value than that of NEW_COMMAND for each member that the key does not have. */
const OTHER: Omit<Command, keyof typeof KEY> = {
  ...{ version: 7, stage: 'terminal', lastProvenStage: 'acknowledged', outcome: 'failed' },
  ...{ execution: 'reported_by_client', error: { code: 'x"', message: 'line\nä' }, reason: 'a "reason"', attempts: 1 },
  ...{ action: 'notes.add', scopeId: 'te\\am', digest: 'd1', namedInstanceId: 'i1', clientType: 'mobile' },
  ...{
    caller: { kind: 'grant', name: 'gränt', label: { kind: 'mcp', name: 'a "host"', version: null } },
    callSpan: '00',
    traceId: 't',
    parentSpanId: 'p',
    traceFlags: '01',
  },
  ...{ traceState: 'v=1', expectedInstanceId: 'i1', boundInstanceId: 'i2', nodeId: 'n1', recoveredFromNodeId: 'n2' },
  ...{ admittedAt: AT - 5, queuedAt: AT - 4, dispatchedAt: AT - 3, acknowledgedAt: AT - 2, terminalAt: AT - 1 },
  ...{ cancelRequestedAt: AT, connectDeadline: AT + 1, deadline: AT + 2, lateResults: 2, resultExpired: true },
  contextId: 'tab-1',
  firstLate: { at: AT - 1, instanceId: 'i9', kind: 'result', digest: 'd' },
  sightings: [
    { messageId: 'c1:result:i1', firstSeenAt: AT - 9, lastSeenAt: AT - 8, count: 3 },
    { messageId: 'other', firstSeenAt: AT, lastSeenAt: AT, count: 1 },
  ],
};

function written(before: Command, after: Command): Command {
  const records = new ActWriter();
  records.begin(AT, NO_USER);
  records.addText(differenceOf(before, after, AT));
  const [act] = [...readActs(Buffer.from(records.take()))];
  return applyDifference(before, act?.facts[0] as readonly unknown[], { at: AT, intern: new Interned() });
}

describe('the difference of two records of a command', () => {
  const before: Command = { ...NEW_COMMAND, ...KEY };

  it('keeps the token of a caller, with or without a label, in few bytes', () => {
    const label = { kind: 'mcp', name: 'host', version: '1' } as const;
    const token = { id: 'Vd3mOoq0kX9cC2ar', issuedAt: AT };
    for (const more of [{ token }, { token, label }, { token: { id: null, issuedAt: null } }, { label }, {}]) {
      const after: Command = { ...before, caller: { kind: 'user', name: 'alice', ...more } };
      expect(written(before, after)).toEqual(after);
    }
    const lengthOf = (caller: Command['caller']): number => differenceOf(before, { ...before, caller }, AT).length;
    const plain = lengthOf({ kind: 'user', name: 'alice' });
    expect(lengthOf({ kind: 'user', name: 'alice', token }) - plain).toBe(36);
  });

  it.each([
    [['user', 'alice'], { kind: 'user', name: 'alice' }],
    [
      ['grant', 'g1', 'mcp', 'host', '1'],
      { kind: 'grant', name: 'g1', label: { kind: 'mcp', name: 'host', version: '1' } },
    ],
  ])('of an earlier version is read: %j', (packed, caller) => {
    expect(applyDifference(before, [0, 1, 13, packed], { at: AT, intern: new Interned() }).caller).toEqual(caller);
  });

  it.each(Object.keys(OTHER) as (keyof typeof OTHER)[])('keeps %s, alone and with all others', (member) => {
    const after = { ...before, [member]: OTHER[member] };
    expect(written(before, after)).toEqual(after);
    const all = { ...before, ...OTHER };
    expect(written({ ...all, [member]: before[member] }, all)).toEqual(all);
    expect(written(all, { ...all, [member]: before[member] })).toEqual({ ...all, [member]: before[member] });
  });
});

describe('a batch of acts', () => {
  it('gives back facts of any texts, and payloads as they arrived', () => {
    const records = new ActWriter();
    const texts = ['', 'plain', '"', '\\', '\u001e\u001f', 'ä€😀', '\u2028', 'a b'];
    const payloads = ['{"a" : 1.0}', '"ä\\u0000"', '[]'].map(trustJson);
    for (const at of [AT, AT + 1]) {
      records.begin(at, NO_USER);
      records.add('texts', ...texts, null, 0, -1.5, true, { texts }, [texts]);
      for (const payload of payloads) records.add(records.payload(payload), records.payload(payload));
      records.add(records.payload(null));
    }
    const acts = [...readActs(Buffer.from(records.take()))];
    expect(acts.map(({ at }) => at)).toEqual([AT, AT + 1]);
    for (const { facts, payloads: read } of acts) {
      expect(facts).toEqual(['texts', ...texts, null, 0, -1.5, true, { texts }, [texts], 0, 0, 1, 1, 2, 2, -1]);
      expect(read).toEqual(payloads);
    }
  });

  it('joins facts of several times into few records, with their times', () => {
    const records = new ActWriter();
    for (let number = 0; number < 100; number++) {
      records.join(AT + Math.floor(number / 2));
      records.add('fact', number);
    }
    const acts = [...readActs(Buffer.from(records.take()))];
    expect(acts.map(({ at }) => at)).toEqual([AT, AT + 32]);
    const told: (readonly number[])[] = [];
    for (const { at, facts } of acts) {
      let now = at;
      for (let i = 0; i < facts.length; i += 2) {
        const number = Number(facts[i + 1]);
        if (facts[i] === 'at') now = at + number;
        else told.push([number, now]);
      }
    }
    expect(told).toEqual(Array.from({ length: 100 }, (_, number) => [number, AT + Math.floor(number / 2)]));
  });

  it('has deferred facts after the fact that they follow', () => {
    const records = new ActWriter();
    records.begin(AT, NO_USER);
    records.deferred(
      () => records.add('later'),
      () => records.add('first'),
    );
    expect([...readActs(Buffer.from(records.take()))].map(({ facts }) => facts)).toEqual([['first', 'later']]);
  });
});
