/** Tests the event stream of a site session: access, frames, tickets and slow viewers. */
import { connect as connectSocket, type Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import type { Bus } from '../../src/core/backend.ts';
import { READ_NOTHING_MS } from '../../src/core/limits.ts';
import { eventFrame } from '../../src/web/sse.ts';
import type { RawStream } from '../graphql/kit/stream.ts';
import { settle } from '../kit/clock.ts';
import { eventually } from '../kit/patience.ts';
import { until, type Requester } from './kit/test-relay.ts';
import { startBoardRelay, framesOf, disconnectHost, SITE, type BoardRelay } from './kit/board-relay.ts';

const names = (stream: RawStream): string[] => framesOf(stream).map(({ event }) => event);

async function listening(at: BoardRelay, requester: Requester | null, query = ''): Promise<RawStream> {
  const stream = await at.listen(requester, query);
  if (stream.status !== 200) throw new Error(String(stream.status));
  await stream.until('callboard.ready');
  return stream;
}

async function ticketOf(at: BoardRelay, requester: Requester = 'viewer'): Promise<string> {
  const answer = await at.post(`/site-sessions/${at.session.session_id}/ticket`, {}, requester);
  return String(answer.json?.['ticket']);
}

async function refusal(
  at: BoardRelay,
  requester: Requester | null,
  query = '',
  sessionId?: string,
): Promise<unknown[]> {
  const stream = await at.listen(requester, query, sessionId);
  await stream.ended;
  return [stream.status, JSON.parse(stream.text()).code];
}

/** Counts how often the last listener to events of sites goes. */
function countListeners(bus: Bus) {
  const counts = { listeners: 0, timesNone: 0 };
  const subscribe = bus.subscribe.bind(bus);
  vi.spyOn(bus, 'subscribe').mockImplementation((topic, ...rest) => {
    const cancel = subscribe(topic, ...rest);
    if (!topic.startsWith('site:')) return cancel;
    counts.listeners++;
    return () => {
      cancel();
      if (--counts.listeners === 0) counts.timesNone++;
    };
  });
  return counts;
}

describe('the event stream of a session', () => {
  it('begins with ready, gives each event its name, its id and its data, and pings', async () => {
    await using at = await startBoardRelay();
    const stream = await listening(at, 'viewer');
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const data = { text: 'a\nb\r\n\u0000\u2028', list: [1, null] };
    const ingested = await at.publish({ name: 'changed', data });
    const [{ message_id }] = ingested.json?.['items'] as [{ message_id: string }];
    await stream.until('event: changed');
    expect(framesOf(stream)).toEqual([
      { event: 'callboard.ready', id: undefined, data: { session_id: at.session.session_id } },
      {
        event: 'changed',
        id: message_id,
        data: { name: 'changed', data, message_id, published_at: new Date(at.clock.now()).toISOString(), missed: 0 },
      },
    ]);
    const pings = stream.text().split('\n:\n').length;
    await at.clock.advance(20_000);
    await until(() => stream.text().split('\n:\n').length > pings);
    stream.abort();
  });

  it('is ready once all nodes know that somebody listens', async () => {
    await using at = await startBoardRelay();
    const told = Promise.withResolvers<void>();
    using _ = vi.spyOn(at.backend.bus, 'confirmed').mockReturnValue(told.promise);
    const listeners = countListeners(at.backend.bus);
    let isReady = false;
    const opened = listening(at, 'viewer').then((stream) => {
      isReady = true;
      return stream;
    });
    await eventually(() => expect(at.backend.bus.confirmed).toHaveBeenCalledWith(null));
    await settle();
    expect(isReady).toBe(false);
    told.resolve();
    const stream = await opened;
    // Other nodes are told whenever the first listener comes and the last one goes.
    expect(listeners.timesNone).toBe(0);
    await at.publish({ name: 'changed', data: 1 });
    await stream.until('event: changed');
    stream.abort();
  });

  it('is restricted to the requested names', async () => {
    await using at = await startBoardRelay();
    await at.put({ event_names: [] });
    const some = await listening(at, 'viewer', '?names=b,c');
    for (const name of ['a', 'b', 'c']) await at.publish({ name });
    await some.until('"name":"c"');
    expect(names(some)).toEqual(['callboard.ready', 'b', 'c']);
    some.abort();
  });

  it('refuses malformed requests and requesters without permission', async () => {
    await using at = await startBoardRelay();
    expect(await refusal(at, null)).toEqual([401, 'unauthenticated']);
    for (const query of ['?name=a', '?names=', '?names=error', '?names=a&names=b', '?cursor=1'])
      expect(await refusal(at, 'viewer', query)).toEqual([400, 'invalid_argument']);
    expect(await refusal(at, 'viewer', '?names=other')).toEqual([403, 'forbidden']);
    expect(await refusal(at, 'admin')).toEqual([403, 'forbidden']);
    expect(await refusal(at, 'alice:host')).toEqual([403, 'forbidden']);
    const path = `/site-sessions/${at.session.session_id}/events`;
    const posted = await at.post(path, {}, 'viewer');
    expect([posted.status, posted.headers.allow]).toEqual([405, 'GET']);
    const foreign = await at.rest(path, { requester: 'viewer', headers: { origin: 'https://elsewhere.example' } });
    expect(foreign.status).toBe(403);
  });

  it('is absent for another user and for the viewer of another session', async () => {
    await using at = await startBoardRelay();
    at.know('stranger', (await at.open()).token);
    for (const requester of ['bob', 'stranger']) {
      const foreign = await at.listen(requester);
      const absent = await at.listen(requester, '', 'never');
      await Promise.all([foreign.ended, absent.ended]);
      expect([foreign.status, foreign.text()]).toEqual([404, absent.text()]);
    }
    expect(await refusal(at, 'viewer', '', '%zz')).toEqual([404, 'not_found']);
  });

  it('ends with its code, and cannot be opened again: an ended session is 204', async () => {
    await using at = await startBoardRelay();
    const [viewer, owner] = [await listening(at, 'viewer'), await listening(at, 'alice')];
    await at.remove(`/site-sessions/${at.session.session_id}`);
    await Promise.all([viewer.ended, owner.ended]);
    for (const stream of [viewer, owner])
      expect(framesOf(stream).at(-1)).toEqual({
        event: 'callboard.closed',
        id: undefined,
        data: { code: 'session_inactive' },
      });
    const again = await at.listen('viewer');
    await again.ended;
    expect([again.status, again.text()]).toEqual([204, '']);
  });

  it('ends when its grant is revoked, with the streams of grants derived from it, and no others', async () => {
    await using at = await startBoardRelay();
    const grants = `/site-sessions/${at.session.session_id}/grants`;
    const given = await at.post(grants, { share: true }, 'alice');
    at.know('guest', String(given.json?.['token']));
    at.know('friend', String((await at.post(grants, {}, 'guest')).json?.['token']));
    const [viewer, guest, friend] = [
      await listening(at, 'viewer'),
      await listening(at, 'guest'),
      await listening(at, 'friend'),
    ];
    await at.remove(`${grants}/${String(given.json?.['grant_id'])}`);
    await Promise.all([guest.ended, friend.ended]);
    for (const stream of [guest, friend]) expect(framesOf(stream).at(-1)?.data).toEqual({ code: 'unauthenticated' });
    for (const requester of ['guest', 'friend']) expect(await refusal(at, requester)).toEqual([401, 'unauthenticated']);
    await at.publish({ name: 'changed' });
    await viewer.until('event: changed');
    viewer.abort();
  });

  it('ends by itself with its session', async () => {
    await using at = await startBoardRelay();
    const brief = await at.open({ ttl_seconds: 5 });
    at.know('brief', brief.token);
    const stream = await at.listen('brief', '', brief.session_id);
    await stream.until('callboard.ready');
    await at.clock.advance(6_000);
    await stream.ended;
    expect(framesOf(stream).at(-1)?.data).toEqual({ code: 'session_inactive' });
  });

  it('continues while the host is disconnected', async () => {
    await using at = await startBoardRelay();
    const stream = await listening(at, 'viewer');
    await disconnectHost(at);
    const session = await at.rest(`/site-sessions/${at.session.session_id}`, { requester: 'viewer' });
    expect(session.json).toMatchObject({ state: 'suspended', site: { host_connected: false } });
    await at.publish({ name: 'changed' });
    await stream.until('event: changed');
    stream.abort();
  });

  it('sends a last event when the node shuts down', async () => {
    const at = await startBoardRelay();
    const stream = await listening(at, 'viewer');
    await at[Symbol.asyncDispose]();
    await stream.ended;
    expect(framesOf(stream).at(-1)?.data).toEqual({ code: 'draining' });
  });

  it('is one of ten per grant, counted separately for each grant', async () => {
    await using at = await startBoardRelay();
    const open = [];
    for (let i = 0; i < 10; i++) open.push(await listening(at, 'viewer'));
    expect(await refusal(at, 'viewer')).toEqual([429, 'rate_limited']);
    const given = await at.post(`/site-sessions/${at.session.session_id}/grants`, {}, 'alice');
    at.know('guest', String(given.json?.['token']));
    (await listening(at, 'guest')).abort();
    open[0]?.abort();
    await until(async () => {
      const stream = await at.listen('viewer');
      stream.abort();
      return stream.status === 200;
    });
    for (const stream of open) stream.abort();
  });
});

describe('a ticket', () => {
  it('opens one stream without a token, repeatedly, and appears in no log', async () => {
    await using at = await startBoardRelay();
    const ticket = await ticketOf(at);
    const stream = await listening(at, null, `?ticket=${ticket}&names=changed`);
    await at.publish({ name: 'changed' });
    await stream.until('event: changed');
    const newer = await listening(at, null, `?ticket=${ticket}`);
    await stream.ended;
    expect(framesOf(stream).at(-1)).toMatchObject({ event: 'callboard.closed', data: { code: 'unauthenticated' } });
    newer.abort();
    await at.clock.advance(120_000);
    (await listening(at, null, `?ticket=${ticket}`)).abort();
    await until(() => at.lines.some((line) => line.includes('/events') && line.includes('"status":200')));
    expect(at.lines.join('\n')).not.toContain(ticket);
    expect(at.lines.join('\n')).not.toContain(at.session.token);
  });

  it('replaces the stream that it opened before, if its grant has no other', async () => {
    await using at = await startBoardRelay();
    const ticket = await ticketOf(at);
    const open = [await listening(at, null, `?ticket=${ticket}`)];
    for (let i = 0; i < 9; i++) open.push(await listening(at, 'viewer'));
    expect(await refusal(at, 'viewer')).toEqual([429, 'rate_limited']);
    open.push(await listening(at, null, `?ticket=${ticket}`));
    await open[0]?.ended;
    for (const stream of open) stream.abort();
  });

  it('is 204 once its session has ended, so that an EventSource stops, and 401 once its grant has', async () => {
    await using at = await startBoardRelay();
    const given = await at.post(`/site-sessions/${at.session.session_id}/grants`, {}, 'alice');
    at.know('guest', String(given.json?.['token']));
    const [ticket, guests] = [await ticketOf(at), await ticketOf(at, 'guest')];
    for (const one of [ticket, guests]) (await listening(at, null, `?ticket=${one}`)).abort();
    await at.remove(`/site-sessions/${at.session.session_id}/grants/${String(given.json?.['grant_id'])}`);
    expect(await refusal(at, null, `?ticket=${guests}`)).toEqual([401, 'unauthenticated']);
    await at.remove(`/site-sessions/${at.session.session_id}`);
    const again = await at.listen(null, `?ticket=${ticket}`);
    await again.ended;
    expect([again.status, again.text()]).toEqual([204, '']);
  });

  it('belongs to its session, for 30 seconds, and can be the owner’s', async () => {
    await using at = await startBoardRelay();
    const other = await at.open();
    expect(await refusal(at, null, `?ticket=${await ticketOf(at)}`, other.session_id)).toEqual([
      401,
      'unauthenticated',
    ]);
    const late = await ticketOf(at);
    (await listening(at, null, `?ticket=${await ticketOf(at, 'alice')}`)).abort();
    await at.clock.advance(30_000);
    expect(await refusal(at, null, `?ticket=${late}`)).toEqual([401, 'unauthenticated']);
  });

  it('cannot be used elsewhere, and an invalid one counts as a bad token', async () => {
    await using at = await startBoardRelay();
    const ticket = await ticketOf(at);
    const requested = await at.rest(`/site-sessions/${at.session.session_id}?ticket=${ticket}`, {
      requester: 'nobody',
    });
    expect(requested.status).toBe(401);
    at.know('bearer', ticket);
    expect((await at.rest(`/site-sessions/${at.session.session_id}`, { requester: 'bearer' })).status).toBe(401);
    for (let i = 0; i < 20; i++) await refusal(at, null, '?ticket=wrong');
    expect((await refusal(at, null, '?ticket=wrong'))[0]).toBe(429);
    // Valid tickets still work, despite the failed ones.
    expect((await at.rest(`/site-sessions/${at.session.session_id}`, { requester: 'viewer' })).status).toBe(200);
  });
});

describe('a viewer that stops reading', () => {
  const graphql = ({ session }: BoardRelay): string =>
    JSON.stringify({ query: `subscription { siteEvents(sessionId: "${session.session_id}") { data missed } }` });
  const FACES: readonly (readonly [string, (at: BoardRelay) => readonly string[]])[] = [
    ['plain events', ({ session }) => [`GET /site-sessions/${session.session_id}/events HTTP/1.1`, '', '']],
    [
      'GraphQL',
      (at) => [
        'POST /graphql HTTP/1.1',
        'accept: text/event-stream',
        'content-type: application/json',
        `content-length: ${graphql(at).length}`,
        '',
        graphql(at),
      ],
    ],
  ];

  /** Sends a request whose answer is not read until it is resumed. */
  function idle(
    at: BoardRelay,
    [first = '', ...rest]: readonly string[],
  ): { readonly socket: Socket; read(): Promise<string> } {
    const socket = connectSocket(at.port, '127.0.0.1');
    socket.pause();
    const bearer = `authorization: Bearer ${at.session.token}`;
    socket.write([first, 'host: x', bearer, ...rest].join('\r\n'));
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString('utf8')));
    socket.pause();
    return {
      socket,
      async read() {
        socket.resume();
        await until(() => text.includes('"last"'));
        return text;
      },
    };
  }

  it.each(FACES)(
    "of %s costs a queue of 100 and its socket's buffer, delays nobody, and gets the exact count of missed events",
    async (_face, asking) => {
      await using at = await startBoardRelay();
      const reader = await listening(at, 'alice');
      const { socket, read } = idle(at, asking(at));
      const subscribers = async (): Promise<unknown> =>
        (await at.rest(`/site-sessions/${at.session.session_id}`, { requester: 'alice' })).json?.['subscribers'];
      await until(async () => (await subscribers()) === 2);
      const pad = 'x'.repeat(64 * 1024);
      const count = 400;
      const instance = { clientId: 'desk', instanceId: at.runtime.instanceId };
      const alice = { kind: 'user', userId: 'alice', scopes: new Set(['host'] as const), expiresAt: null } as const;
      for (let i = 1; i <= count; i++) {
        const payload = JSON.stringify({ name: 'changed', data: i === count ? 'last' : { i, pad } });
        await at.callboard.core.ingest.ingestCooperativeSiteMessage(alice, {
          ...{ kind: 'event', streamSuffix: 'sites/board/events', ...instance },
          payload: payload as never,
        });
        if (i % 20 === 0) await settle();
        if (i % 40 === 0) await reader.until('event: changed', i);
      }
      expect(framesOf(reader).filter(({ event }) => event === 'changed')).toHaveLength(count);
      expect(framesOf(reader).every(({ data }) => (data.missed ?? 0) === 0)).toBe(true);
      // In this time, the relay would cut the reader of an ordinary answer.
      await at.clock.advance(2 * READ_NOTHING_MS);
      const text = await read();
      const events = [...text.matchAll(/"data":(?:\{"i":(\d+)|"last")[^\n]*?"missed":(\d+)\}/g)];
      const got = events.map(([, i = String(count), missed]) => ({ i: Number(i), missed: Number(missed) }));
      let before = 0;
      for (const { i, missed } of got) {
        expect(missed).toBe(i - before - 1);
        before = i;
      }
      expect(before).toBe(count);
      const missed = got.reduce((sum, one) => sum + one.missed, 0);
      expect([missed > 0, missed + got.length]).toEqual([true, count]);
      // The last hundred events were queued. Everything before the gap was in the sockets already.
      expect(got.findIndex((one) => one.missed > 0)).toBe(got.length - 100);
      socket.destroy();
      reader.abort();
    },
  );
});

describe('a site over GraphQL’s event streams', () => {
  const EVENTS = 'subscription ($id: ID!) { siteEvents(sessionId: $id) { name missed } }';

  it('ends with the code of its cause', async () => {
    await using at = await startBoardRelay();
    const variables = { id: at.session.session_id };
    const given = await at.post(`/site-sessions/${at.session.session_id}/grants`, {}, 'alice');
    at.know('guest', String(given.json?.['token']));
    const [viewer, guest] = [
      await at.subscribe(EVENTS, { requester: 'viewer', variables }),
      await at.subscribe(EVENTS, { requester: 'guest', variables }),
    ];
    await until(async () => (await at.callboard.core.sites.session(ADMIN, variables.id))?.subscribers === 2);
    await at.remove(`/site-sessions/${at.session.session_id}/grants/${String(given.json?.['grant_id'])}`);
    await guest.ended;
    expect(guest.text()).toContain('"code":"unauthenticated"');
    expect(guest.text()).toContain('event: complete');
    await at.remove(SITE);
    await viewer.ended;
    expect(viewer.text()).toContain('"code":"session_inactive"');
  });

  it('opens nothing for a grant except its session', async () => {
    await using at = await startBoardRelay();
    const variables = { id: at.session.session_id };
    const query = `query ($id: ID!) { siteSession(sessionId: $id) {
      state subscribers grant { id: grantId events actions share } grants { id: grantId }
      site { id: siteId owner title eventNames actions clientId host { clientId } registeredAt sessions { nodes { id: sessionId } } }
    } }`;
    const { siteSession } = await at.data(query, { requester: 'viewer', variables });
    expect(siteSession).toMatchObject({
      ...{ state: 'ACTIVE', subscribers: null, grants: null },
      grant: { id: at.session.grant_id, events: null, share: true },
      site: { id: 'board', owner: null, title: 'A board', eventNames: ['changed'], clientId: null },
    });
    expect(siteSession.site).toMatchObject({ host: null, registeredAt: null, sessions: null });
    const own = (await at.data(query, { requester: 'alice', variables }))['siteSession'];
    expect(own).toMatchObject({
      grants: [{ id: at.session.grant_id }],
      site: { owner: 'alice', host: { clientId: 'desk' }, sessions: { nodes: [{ id: at.session.session_id }] } },
    });
    for (const requested of [
      '{ sites { nodes { id } } }',
      '{ connections { nodes { clientId } } }',
      '{ viewer { kind } }',
    ])
      expect((await at.graphql(requested, { requester: 'viewer' })).code).toBe('forbidden');
    for (const path of ['/sites', '/connections', SITE, '/users', '/metrics'])
      expect((await at.rest(path, { requester: 'viewer' })).status).toBe(403);
    expect((await at.publish({ name: 'changed' }, {}, 'viewer')).status).toBe(403);
  });

  it('nests sites in users, with their hosts and sessions', async () => {
    await using at = await startBoardRelay();
    const query = `{ users(first: 10) { nodes { id: userId sites(first: 10) { nodes { id: siteId hostConnected host { clientId } sessions(first: 10) { nodes { state } } }
      completeness { complete sources { source } } } } } }`;
    const { users } = await at.data(query);
    expect(users.nodes.find(({ id }: { id: string }) => id === 'alice').sites).toEqual({
      nodes: [
        { id: 'board', hostConnected: true, host: { clientId: 'desk' }, sessions: { nodes: [{ state: 'ACTIVE' }] } },
      ],
      completeness: { complete: true, sources: [{ source: 'SITES' }] },
    });
  });
});

const ADMIN = { kind: 'admin', name: 'test', expiresAt: null } as const;

describe('a frame of an event stream', () => {
  it('contains its fields, each on a line', () => {
    expect(eventFrame({ event: 'a', id: '1', data: '{}' })).toBe('event: a\nid: 1\ndata: {}\n\n');
    expect(eventFrame({ event: 'a', data: '1' })).toBe('event: a\ndata: 1\n\n');
  });

  it.each(['\r', '\n', '\u0000', 'a\nevent: b'])('refuses a field with %j', (bad) => {
    expect(() => eventFrame({ event: bad, data: '1' })).toThrow(TypeError);
    expect(() => eventFrame({ event: 'a', id: bad, data: '1' })).toThrow(TypeError);
    expect(() => eventFrame({ event: 'a', data: bad })).toThrow(TypeError);
  });
});
