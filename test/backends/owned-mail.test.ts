/** Tests mail between processes: in order, each message once, through losses, repeats and a change of the order. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  Mail,
  readEnvelope,
  writeEnvelope,
  type Dependency,
  type MailEnvelope,
  type MailMessage,
} from '../../src/backends/owned/mail.ts';
import type { OutgoingMail } from '../../src/backends/owned/turns.ts';
import { silentLog } from '../../src/core/ports.ts';
import { FakeClock } from '../kit/clock.ts';

describe('an envelope', () => {
  const message = fc.record({
    kind: fc.constantFrom('request' as const, 'row' as const, 'event' as const),
    text: fc.string({ unit: 'binary' }),
  });
  const envelope: fc.Arbitrary<MailEnvelope> = fc.record({
    from: fc.constant('relay.eu.x1'),
    kind: fc.constantFrom(...(['mail', 'free', 'last', 'has', 'ask', 'begin'] as const)),
    series: fc.nat(),
    number: fc.nat(),
    messages: fc.array(message),
  });

  it('is read as it was written, whatever the messages contain', () => {
    fc.assert(
      fc.property(envelope, (given) => {
        expect(readEnvelope(writeEnvelope(given))).toEqual(given);
      }),
    );
  });

  it('that is cut or no envelope is refused', () => {
    const text = writeEnvelope({
      ...{ from: 'a.1', kind: 'mail', series: 1, number: 1 },
      messages: [{ kind: 'row', text: 'some text' }],
    });
    for (const bad of [text.slice(0, -1), `${text}x`, text.replace('b9', 'q9'), '', 'a.1 post 1 1\n', text.slice(5)])
      expect(readEnvelope(bad), bad).toBeNull();
  });
});

describe('mail', () => {
  /** What a network does with a text. */
  type Fate = 'deliver' | 'lose' | 'double' | 'delay';

  /** Two processes, `a.1` and `b.1`, and a network whose acts a test chooses. */
  function network(fates: () => Fate = () => 'deliver') {
    const clock = new FakeClock();
    const received = { 'a.1': [] as string[], 'b.1': [] as string[] };
    const losses: string[] = [];
    const dead = new Set<string>();
    const delayed: (() => void)[] = [];
    const ways: Record<string, Mail> = {};
    let recorded = Promise.resolve();
    const publish = (to: string, text: string): void => {
      const deliver = (): void => ways[to]?.receive(text);
      const fate = fates();
      if (fate === 'lose') return;
      if (fate === 'delay') return void delayed.push(deliver);
      deliver();
      if (fate === 'double') deliver();
    };
    const join = (process: 'a.1' | 'b.1'): Mail =>
      new Mail({
        ...{ process, publish, clock, log: silentLog, plan: () => {} },
        isAlive: (other) => !dead.has(other),
        onRecord: (run) => void recorded.then(run),
        receive: (_from, { text }) => void received[process].push(text),
        onLoss: (from) => void losses.push(`${process} from ${from}`),
      });
    const [a, b] = [join('a.1'), join('b.1')];
    Object.assign(ways, { 'a.1': a, 'b.1': b });
    return {
      ...{ a, b, clock, received, losses, dead },
      /** Sends what the processes have, and returns it. */
      turn(): readonly OutgoingMail[] {
        const mail = [...a.take(), ...b.take()];
        for (const { process, text } of mail) publish(process, text);
        return mail;
      },
      /** Delivers what was delayed, the latest first. */
      late: () =>
        delayed
          .splice(0)
          .reverse()
          .forEach((deliver) => deliver()),
      hold(): () => void {
        const { promise, resolve } = Promise.withResolvers<void>();
        recorded = promise;
        return resolve;
      },
    };
  }
  const row = (text: string | number) => ({ kind: 'row', text: String(text) }) as const;

  it('that was lost last is told after a beat without any, until its receiver has it, and then no more', async () => {
    let isCut = true;
    let published = 0;
    const { a, b, turn, received, clock } = network(() => (published++, isCut ? 'lose' : 'deliver'));
    const beat = async (): Promise<number> => {
      published = 0;
      for (const process of [a, b]) process.beat();
      await clock.advance(1);
      return published;
    };
    a.send('b.1', row(1), 'all');
    turn();
    expect([await beat(), await beat(), await beat()]).toEqual([0, 1, 1]);
    isCut = false;
    // It is told, asked for and sent. Then its receiver says that it has all.
    expect([await beat(), await beat()]).toEqual([3, 2]);
    expect(received['b.1']).toEqual(['1']);
    expect([await beat(), await beat()]).toEqual([0, 0]);
  });

  it('of requests alone needs no beats, because they are repeated; other messages after them do', () => {
    let isCut = false;
    let published = 0;
    const { a, turn, received } = network(() => (published++, isCut ? 'lose' : 'deliver'));
    const beats = (): number => {
      published = 0;
      for (let i = 0; i < 3; i++) a.beat();
      return published;
    };
    const send = (message: MailMessage): void => {
      a.send('b.1', message, 'all');
      turn();
    };
    send(row(1));
    beats();
    isCut = true;
    send({ kind: 'request', text: '2' });
    expect(beats()).toBe(0);
    send(row(3));
    isCut = false;
    expect(beats()).toBeGreaterThan(0);
    expect(received['b.1']).toEqual(['1']);
  });

  it('that goes on needs no beats', () => {
    let published = 0;
    const { a, turn } = network(() => (published++, 'deliver'));
    for (let i = 0; i < 10; i++) {
      a.send('b.1', row(i), 'all');
      turn();
      a.beat();
    }
    expect(published).toBe(10);
  });

  it('that a process has given up is told in beats, also if nothing follows it', () => {
    const fates: Fate[] = ['lose'];
    const { a, turn, losses } = network(() => fates.pop() ?? 'deliver');
    a.send('b.1', row(1), 'all');
    a.take();
    a.send('b.1', row(2), null);
    fates.pop();
    turn();
    a.beat();
    a.beat();
    fates.push('lose');
    a.restart();
    expect(losses).toEqual([]);
    a.beat();
    expect(losses).toEqual(['b.1 from a.1']);
  });

  it('of one turn to one process is one envelope, with all that it depends on', () => {
    const { a, turn, received } = network();
    const sent: readonly (readonly [string, Dependency])[] = [
      ['1', 3],
      ['free', null],
      ['2', 5],
      ['3', 3],
    ];
    for (const [text, after] of sent) a.send('b.1', row(text), after);
    expect(turn().map(({ after }) => after)).toEqual([new Set(), new Set([3, 5])]);
    a.send('b.1', row(4), 1);
    a.send('b.1', row(5), 'all');
    expect(turn().map(({ after }) => after)).toEqual(['all']);
    expect(received['b.1']).toEqual(['free', '1', '2', '3', '4', '5']);
    expect(turn()).toEqual([]);
  });

  it('arrives in order, each once, whatever the network loses, doubles and delays', async () => {
    const fate = fc.constantFrom<Fate>('deliver', 'lose', 'double', 'delay');
    await fc.assert(
      fc.asyncProperty(fc.array(fate, { minLength: 5, maxLength: 60 }), async (fates) => {
        const left = [...fates];
        const { a, b, turn, late, received, clock, losses } = network(() => left.pop() ?? 'deliver');
        const sent = Array.from({ length: 30 }, (_, i) => String(i));
        for (const text of sent) {
          a.send('b.1', row(text), 'all');
          b.send('a.1', row(text), 'all');
          turn();
          if (Number(text) % 7 === 0) late();
        }
        for (let i = 0; i < 80; i++) {
          late();
          a.beat();
          b.beat();
          await clock.advance(250);
        }
        expect(received).toEqual({ 'a.1': sent, 'b.1': sent });
        expect(losses).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it('is not sent again before what it depends on is recorded', async () => {
    const fates: Fate[] = ['lose'];
    const { a, turn, clock, received, hold } = network(() => fates.pop() ?? 'deliver');
    const record = hold();
    a.send('b.1', row(1), 'all');
    turn();
    a.send('b.1', row(2), 'all');
    turn();
    await clock.advance(1_000);
    expect(received['b.1']).toEqual([]);
    record();
    await clock.advance(1_000);
    expect(received['b.1']).toEqual(['1', '2']);
  });

  it('that is no longer kept is told to its receiver, and what follows arrives', async () => {
    let isCut = true;
    const { a, turn, clock, received, losses } = network(() => (isCut ? 'lose' : 'deliver'));
    for (let i = 0; i < 5_000; i++) {
      a.send('b.1', row(i), 'all');
      turn();
    }
    isCut = false;
    // More may follow what was sent since the last beat.
    for (let i = 0; i < 2; i++) a.beat();
    await clock.advance(1_000);
    expect(losses).toEqual(['b.1 from a.1']);
    expect(received['b.1'].at(-1)).toBe('4999');
    expect(received['b.1'].length).toBeGreaterThan(1_000);
    expect(received['b.1']).toEqual([...received['b.1']].sort((x, y) => Number(x) - Number(y)));
  });

  it('of a process that has lost a partition begins anew, and its receivers are told', async () => {
    const fates: Fate[] = ['lose', 'deliver'];
    const { a, turn, clock, received, losses } = network(() => fates.pop() ?? 'deliver');
    for (const text of [1, 2]) {
      a.send('b.1', row(text), 'all');
      turn();
    }
    a.send('b.1', row('never sent'), 'all');
    a.send('b.1', row('free'), null);
    a.restart();
    expect(losses).toEqual(['b.1 from a.1']);
    a.send('b.1', row(3), 'all');
    turn();
    await clock.advance(1_000);
    expect(received['b.1']).toEqual(['1', 'free', '3']);
  });

  it('of a process that is dead is dropped, and not asked for', async () => {
    let asked = 0;
    const { a, b, turn, received, dead, clock } = network(() => (asked++, 'deliver'));
    a.send('b.1', row(1), 'all');
    turn();
    dead.add('a.1');
    b.forget('a.1');
    a.send('b.1', row(2), 'all');
    turn();
    const before = asked;
    await clock.advance(5_000);
    expect(received['b.1']).toEqual(['1']);
    expect(asked).toBe(before);
  });

  it('of a process that was forgotten by mistake is not delivered again', async () => {
    const { a, b, turn, received, clock } = network();
    for (const text of [1, 2]) {
      a.send('b.1', row(text), 'all');
      turn();
    }
    b.forget('a.1');
    a.send('b.1', row(3), 'all');
    turn();
    a.beat();
    await clock.advance(1_000);
    expect(received['b.1']).toEqual(['1', '2', '3']);
  });

  it('goes on to a process that was forgotten by mistake', () => {
    const { a, turn, received, losses } = network();
    a.send('b.1', row(1), 'all');
    turn();
    a.forget('b.1');
    a.send('b.1', row(2), 'all');
    turn();
    expect(received['b.1']).toEqual(['1', '2']);
    expect(losses).toEqual(['b.1 from a.1']);
  });
});
