/** Tests that history can be read in either order, over REST and GraphQL. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

const STREAM = 'alice/clients/tab';
const KINDS = ['command', 'progress', 'progress', 'progress', 'result'];

let at: TestRelay;
beforeEach(async () => {
  at = await startTestRelay();
  const tab = await at.client({ client_id: 'tab', instance_id: 'i1' });
  const invoked = at.post('/connections/alice/tab/actions/open', { command_id: 'c1' });
  await tab.next('command');
  for (const n of [1, 2, 3]) {
    tab.send({ type: 'progress', command_id: 'c1' }, n);
    await tab.sync();
    await at.clock.advance(1_000);
  }
  tab.send({ type: 'result', command_id: 'c1' });
  await invoked;
});
afterEach(() => at[Symbol.asyncDispose]());

const read = async (path: string): Promise<any> => JSON.parse((await at.rest(path)).text);
const idsOf = ({ items }: any): string[] => items.map(({ message_id }: any) => message_id);

describe('the order of history', () => {
  it.each([
    ['a stream', `/history/messages?stream=${STREAM}`],
    ['a command', '/history/command/alice/c1?'],
  ])('REST: %s is read oldest first or newest first, and a cursor opens for its order alone', async (_, path) => {
    const oldest = await read(path);
    expect(oldest.items.map(({ kind }: any) => kind)).toEqual(KINDS);
    expect(idsOf(await read(`${path}&order=oldest_first`))).toEqual(idsOf(oldest));
    const found: string[] = [];
    const cursors: string[] = [];
    for (let cursor = ''; ;) {
      const page = await read(`${path}&order=newest_first&limit=2${cursor && `&cursor=${cursor}`}`);
      found.push(...idsOf(page));
      if (page.next_cursor === null) break;
      cursors.push((cursor = page.next_cursor));
    }
    expect(found).toEqual(idsOf(oldest).toReversed());
    const [newest] = cursors;
    const { next_cursor: first } = await read(`${path}&limit=2`);
    for (const query of [
      `cursor=${newest}`,
      `order=oldest_first&cursor=${newest}`,
      `order=newest_first&cursor=${first}`,
    ])
      expect((await read(`${path}&limit=2&${query}`)).code).toBe('invalid_cursor');
    expect((await read(`${path}&limit=2&order=oldest_first&cursor=${first}`)).items).toHaveLength(2);
    expect(await read(`${path}&order=NEWEST_FIRST`)).toMatchObject({ code: 'invalid_argument' });
  });

  it('GraphQL: messages, commandHistory and the history of a command accept an order', async () => {
    const newest = 'order: NEWEST_FIRST, first: 2) { nodes { kind } }';
    const command = 'userId: "alice", commandId: "c1"';
    const data = await at.data(
      `{ messages(stream: "${STREAM}", ${newest}
         commandHistory(${command}, ${newest}
         command(${command}, clientId: "tab") { newest: history(${newest} oldest: history(first: 1) { nodes { kind } } } }`,
    );
    const last = { nodes: [{ kind: 'RESULT' }, { kind: 'PROGRESS' }] };
    const first = { nodes: [{ kind: 'COMMAND' }] };
    expect(data).toEqual({ messages: last, commandHistory: last, command: { newest: last, oldest: first } });
  });
});
