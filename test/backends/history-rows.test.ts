/** Tests how the memory history holds rows: those of a command in one object, and all of them in the order of age. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemoryHistory } from '../../src/backends/memory/history.ts';
import {
  AgeQueue,
  CommandRows,
  MessageRow,
  NO_TRACE,
  ROW_BYTES,
  Stream,
  messageAbout,
} from '../../src/backends/memory/history-row.ts';
import type { CommandMessage } from '../../src/core/commands/transaction.ts';
import { clientStream } from '../../src/core/history/message.ts';
import { toJson } from '../../src/core/json.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { FakeClock } from '../kit/clock.ts';

const ALL = { first: 1000, after: null };
const EVERY = { afterTime: null, beforeTime: null, kinds: null };
const SPILL = { name: 's', bytes: 20_000, sha256: 'x', expiresAt: 1 };

/** Returns the row of a command as the rules give it to the store. */
function partOf(commandId: string, kind: CommandMessage['kind'], size: number | 'spilled'): CommandMessage {
  const kept =
    size === 'spilled' ? { payload: null, spill: SPILL } : { payload: toJson('é'.repeat(size)), spill: null };
  if (kind === 'result') return { kind, instanceId: 'i1', id: `${commandId}:result:i1`, kept };
  if (kind === 'progress') return { kind, instanceId: 'i1', id: `${commandId}:progress:1`, kept };
  if (kind === 'cancel') return { kind, instanceId: null, error: { code: 'cancelled', message: 'enough' } };
  return { kind, instanceId: 'i1', kept };
}

describe('the rows of a command in the memory history', () => {
  it('are read as if each had been retained as a message, for any sequence of rows and of drops', async () => {
    const act = fc.record({
      command: fc.integer({ min: 0, max: 4 }),
      kind: fc.constantFrom('command', 'result', 'progress', 'cancel'),
      size: fc.constantFrom(0, 3, ROW_BYTES, 'spilled' as const),
      ms: fc.constantFrom(0, 1, 40),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 80, size: 'max' }), async (acts) => {
        const clock = new FakeClock();
        const limits = { bytes: 12 * ROW_BYTES, retentionMs: 100, streamMessages: 6 };
        const own = createMemoryHistory({ clock, limits });
        const plain = createMemoryHistory({ clock, limits });
        const commands = Array.from({ length: 5 }, (_, i) => {
          const clientId = i % 2 === 0 ? 'tab' : 'phone';
          const trace = i === 4 ? { ...NO_TRACE, traceId: 't4' } : NO_TRACE;
          return new CommandRows(`c${i}`, trace, { userId: 'alice', clientId, suffix: clientStream(clientId) });
        });
        const shown = async ({ messages, ofCommand, streams, totals, sample }: typeof own) => ({
          streams: await streams('alice', null, ALL),
          rows: [
            await messages('alice', 'clients/tab', EVERY, ALL),
            await messages('alice', 'clients/phone', EVERY, ALL),
          ],
          commands: await Promise.all(commands.map(({ commandId }) => ofCommand('alice', commandId, ALL))),
          sample: await sample(null, { messages: 100, bytes: 1e9, of: 'stored' }),
          totals: totals(),
        });
        for (const { command, kind, size, ms } of acts) {
          const rows = commands[command];
          if (!rows) continue;
          const part = partOf(rows.commandId, kind, size);
          const seq = own.keep(rows, part, clock.now());
          expect(seq).toBe(plain.retain(messageAbout(rows, part)).seq);
          expect(await shown(own)).toEqual(await shown(plain));
          await clock.advance(ms);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('are the same object on each read, until they are dropped', async () => {
    const clock = new FakeClock();
    const history = createMemoryHistory({ clock, limits: { streamMessages: 1 } });
    const rows = new CommandRows('c1', NO_TRACE, { userId: 'alice', clientId: 'tab', suffix: 'clients/tab' });
    const read = async () => (await history.ofCommand('alice', 'c1', ALL)).rows.map(({ row }) => row);
    history.keep(rows, partOf('c1', 'command', 1), clock.now());
    const [first] = await read();
    expect((await read())[0]).toBe(first);
    history.keep(rows, partOf('c1', 'result', 1), clock.now());
    expect((await read()).map(({ id, seq }) => [id, seq])).toEqual([['c1:result:i1', 2]]);
  });
});

describe('the order of rows by age', () => {
  it('names the oldest row, and reads all rows in both directions, for any sequence of drops', () => {
    const act = fc.record({
      stream: fc.integer({ min: 0, max: 2 }),
      does: fc.constantFrom('add', 'add', 'add', 'drop', 'drop', 'read', 'rewind'),
      times: fc.integer({ min: 1, max: 60 }),
    });
    fc.assert(
      fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
        const queue = new AgeQueue();
        const streams = [0, 1, 2].map((i) => new Stream({} as never, `s${i}`, { seq: 1 + i, evictedAt: 0 }));
        let model: { stream: Stream; seq: number }[] = [];
        let unread: typeof model = [];
        const drop = (stream: Stream): void => {
          const at = model.findIndex((row) => row.stream === stream);
          if (at < 0) return;
          expect(stream.dropFirst()).toBeDefined();
          queue.noteDeleted();
          const [gone] = model.splice(at, 1);
          unread = unread.filter((row) => row !== gone);
        };
        const act = ({ stream: index, does }: (typeof acts)[number]): void => {
          const stream = streams[index];
          if (!stream) return;
          if (does === 'add') {
            const row = { stream, seq: stream.nextSeq };
            queue.push(stream, row.seq);
            stream.push(new MessageRow(newMessage(), row.seq, 0));
            model = [...model, row];
          } else if (does === 'drop') drop(stream);
          else if (does === 'rewind') {
            queue.rewind();
            unread = [...model];
          } else {
            const row = queue.nextRow();
            expect([row?.stream, row?.seq]).toEqual([unread[0]?.stream, unread[0]?.seq]);
            unread = unread.slice(1);
          }
        };
        for (const one of acts) {
          for (let i = 0; i < one.times; i++) act(one);
          expect(queue.first()).toBe(model[0]?.stream);
          expect([...queue.newest()].map(({ seq }) => seq)).toEqual(model.map(({ seq }) => seq).toReversed());
        }
      }),
      { numRuns: 200 },
    );
  });
});
