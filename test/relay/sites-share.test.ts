/** Tests that viewers of one site get only what each of them may see. */
import { describe, expect, it } from 'vitest';
import type { RawStream } from '../graphql/kit/stream.ts';
import { until } from './kit/test-relay.ts';
import { startBoardRelay, framesOf, type BoardRelay, type Opened } from './kit/board-relay.ts';

const EVENTS =
  'subscription ($id: ID!, $names: [String!]) { siteEvents(sessionId: $id, names: $names) { name data missed } }';
const ADMIN = { kind: 'admin', name: 'test', expiresAt: null } as const;

/** Opens a session for each viewer, who is a requester by name. */
async function visit(at: BoardRelay, requester: string, body: object = {}): Promise<Opened> {
  const session = await at.open(body);
  at.know(requester, session.token);
  return session;
}
async function received(at: BoardRelay, id: string, opening: Promise<RawStream>): Promise<RawStream> {
  const count = async (): Promise<number> => (await at.callboard.core.sites.session(ADMIN, id))?.subscribers ?? 0;
  const before = await count();
  const stream = await opening;
  await until(async () => (await count()) > before);
  return stream;
}
const graphql = (
  at: BoardRelay,
  requester: string,
  { session_id: id }: Opened,
  names?: readonly string[],
): Promise<RawStream> => received(at, id, at.subscribe(EVENTS, { requester, variables: { id, names } }));
const plain = (at: BoardRelay, requester: string, { session_id: id }: Opened, query = ''): Promise<RawStream> =>
  received(at, id, at.listen(requester, query, id));
const namesOf = (stream: RawStream): string[] =>
  [...stream.text().matchAll(/\{"name":"(\w+)"/g)].map(([, name = '']) => name);

describe('viewers of one site, each in a session of its own', () => {
  it('receive what each may receive and requested, over both interfaces', async () => {
    await using at = await startBoardRelay();
    await at.put({ event_names: ['a', 'b', 'last'] });
    const all = await visit(at, 'all');
    const some = await visit(at, 'some', { events: ['b', 'last'] });
    const streams = {
      all: [await graphql(at, 'all', all), await plain(at, 'all', all)],
      some: [await graphql(at, 'some', some), await plain(at, 'some', some)],
      requested: [await graphql(at, 'all', all, ['b', 'last']), await plain(at, 'all', all, '?names=last,b')],
    };
    for (const name of ['a', 'b', 'last']) await at.publish({ name });
    await Promise.all(Object.values(streams).flatMap((both) => both.map((stream) => stream.until('"last"'))));
    expect(streams.all.map(namesOf)).toEqual([
      ['a', 'b', 'last'],
      ['a', 'b', 'last'],
    ]);
    for (const one of [...streams.some, ...streams.requested]) expect(namesOf(one)).toEqual(['b', 'last']);
    Object.values(streams)
      .flat()
      .forEach((stream) => stream.abort());
  });

  it('never receive events of another site with the same name or the same owner', async () => {
    await using at = await startBoardRelay();
    const own = await visit(at, 'own');
    await at.rest('/sites/other', {
      method: 'PUT',
      requester: 'alice',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_id: 'desk' }),
    });
    const other: Opened = JSON.parse((await at.post('/sites/other/sessions', {}, 'alice')).text);
    at.know('other', other.token);
    const [here, there] = [await graphql(at, 'own', own), await graphql(at, 'other', other)];
    await at.publish({ name: 'changed', data: 'here' });
    await at.publish({ name: 'changed', data: 'there' }, { stream_suffix: 'sites/other/events' });
    await Promise.all([here.until('"here"'), there.until('"there"')]);
    expect([here.text().includes('"there"'), there.text().includes('"here"')]).toEqual([false, false]);
    here.abort();
    there.abort();
  });

  it('continue when one of them is revoked, closed or expires, which then receives nothing', async () => {
    await using at = await startBoardRelay();
    const [stays, revoked, closed] = [await visit(at, 'stays'), await visit(at, 'revoked'), await visit(at, 'closed')];
    const expires = await visit(at, 'expires', { ttl_seconds: 30 });
    const on = await graphql(at, 'stays', stays);
    const over = [
      await graphql(at, 'revoked', revoked),
      await graphql(at, 'closed', closed),
      await graphql(at, 'expires', expires),
    ];
    await at.publish({ name: 'changed', data: 'before' });
    await Promise.all([on, ...over].map((stream) => stream.until('"before"')));
    await at.remove(`/site-sessions/${revoked.session_id}/grants/${revoked.grant_id}`);
    await at.remove(`/site-sessions/${closed.session_id}`);
    await at.clock.advance(31_000);
    await Promise.all(over.map((stream) => stream.ended));
    await at.publish({ name: 'changed', data: 'after' });
    await on.until('"after"');
    expect(over.map((stream) => /"code":"(\w+)"/.exec(stream.text())?.[1])).toEqual([
      'unauthenticated',
      'session_inactive',
      'session_inactive',
    ]);
    for (const stream of over) expect(stream.text()).not.toContain('"after"');
    on.abort();
  });

  it('read the same bytes with the fast path switched off, over both interfaces', async () => {
    const read = async (fastPath: boolean): Promise<readonly string[]> => {
      await using at = await startBoardRelay({ config: { fastPath } });
      const session = await visit(at, 'v');
      const streams = [
        await graphql(at, 'v', session),
        await plain(at, 'v', session),
        await graphql(at, 'v', session),
        await plain(at, 'v', session),
      ];
      for (let i = 0; i < 20; i++)
        await at.publish({ name: 'changed', data: { i, text: '\n\r\u2028"\\:\n\ndata: 😀', list: [null, 1.5] } });
      await Promise.all(streams.map((stream) => stream.until('"i":19')));
      await at.remove(`/site-sessions/${session.session_id}`);
      await Promise.all(streams.map((stream) => stream.ended));
      expect(framesOf(streams[1] ?? fail()).filter(({ event }) => event === 'changed')).toHaveLength(20);
      // Ids and times differ between runs.
      return streams.map((stream) =>
        stream
          .text()
          .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
          .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'),
      );
    };
    const [shared, alone] = [await read(true), await read(false)];
    expect(shared).toEqual(alone);
    expect([shared[0], shared[1]]).toEqual([shared[2], shared[3]]);
  });
});

function fail(): never {
  throw new Error('not there');
}
