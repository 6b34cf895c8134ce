/** Tests sites with a real relay: application, host and viewers. */
import { expect, test } from 'vitest';
import { createSiteEventPublisher, startCooperativeSiteControlServer } from '../../src/clients/host/index.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { CooperativeSiteBrowserClient, type SiteEvent, type SiteGap } from '../../src/clients/site/index.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { untilState } from './kit/runtime-bench.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';
import { eventually } from '../kit/patience.ts';

const DEFINITION = {
  title: 'The board',
  event_names: ['site_changed'],
  actions: ['note.add'],
  capability_profile: { action_invocation: true, sharing: true },
};

/**
 * Starts a runtime of alice that hosts sites. `app` sends the application's requests to the runtime's control server.
 * `owner` sends the requests of the sites' owner to the relay.
 */
async function startHost(relay: RealRelay, link = relay.link, instanceId?: string) {
  await using starting = new AsyncDisposableStack();
  const token = () => relay.token('alice', 'connect', 'host');
  const base = { url: link, token, clientId: 'desk', clientType: 'console', random: () => 0 } as const;
  const runtime: Runtime = starting.use(
    createRuntime({ ...base, ...(instanceId === undefined ? {} : { instanceId }) }),
  );
  runtime.handle('note.add', {}, (params, { site }) => ({ params, site }));
  runtime.connect();
  await runtime.ready();
  const control = starting.use(await startCooperativeSiteControlServer({ runtime, token: 'local', port: 0 }));
  const ask = (base: string, bearer: string) => {
    return async (method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' };
      const response = await fetch(base + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
      const text = await response.text();
      return { status: response.status, body: text === '' ? null : JSON.parse(text) };
    };
  };
  const parts = starting.move();
  return {
    runtime,
    app: ask(control.url, 'local'),
    owner: ask(relay.url, await relay.token('alice', 'invoke', 'host')),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

type Host = Awaited<ReturnType<typeof startHost>>;

/** Opens a session and subscribes a viewer to it. Resolves once the subscription is live. */
async function startViewer(relay: RealRelay, host: Host, ask: object = {}) {
  const opened = await host.owner('POST', '/sites/board/sessions', ask);
  expect(opened.status).toBe(200);
  const { session_id: sessionId, token, grant_id: grantId } = opened.body;
  const client = new CooperativeSiteBrowserClient({ url: relay.url, sessionId, token, random: () => 0 });
  const live = Promise.withResolvers<void>();
  const onStatus = (status: string): void => void (status === 'live' && live.resolve());
  const events = client.subscribe({ onStatus })[Symbol.asyncIterator]();
  const first = events.next();
  first.catch(() => {});
  await live.promise;
  const queue = [first];
  const next = async (): Promise<SiteEvent | SiteGap | null> => {
    const { done, value } = await (queue.shift() ?? events.next());
    return done === true ? null : value;
  };
  return { client, sessionId, grantId, token, next, leave: () => events.return?.() };
}

test('an application defines a site, publishes to its viewers, and learns which rule prevented the publication', async () => {
  await using relay = await startRealRelay();
  await using host = await startHost(relay);
  const put = await host.app('PUT', '/sites/board', DEFINITION);
  expect(put).toMatchObject({
    status: 200,
    body: { site_id: 'board', owner: 'alice', client_id: 'desk', ...DEFINITION },
  });
  const { body: site } = await host.owner('GET', '/sites/board');
  expect(site).toMatchObject({ ...put.body, host_connected: true });
  const viewer = await startViewer(relay, host);
  const event = { name: 'site_changed', data: { id: 7 }, message_id: 'm7' };
  const receipt = { message_id: 'm7', retained: true, duplicate: false, published: true, refused_by: null };
  expect(await host.app('POST', '/sites/board/events', event)).toEqual({ status: 200, body: receipt });
  expect(await viewer.next()).toMatchObject({ name: 'site_changed', data: { id: 7 }, messageId: 'm7', missed: 0 });
  const again = await host.app('POST', '/sites/board/events', event);
  expect(again.body).toMatchObject({ message_id: 'm7', duplicate: true, published: false });
  const verdicts = [
    ['other', 'allowlist'],
    ['not a name', 'name'],
  ] as const;
  for (const [name, rule] of verdicts) {
    const kept = await host.app('POST', '/sites/board/events', { name });
    expect(kept).toMatchObject({ status: 200, body: { retained: true, published: false, refused_by: rule } });
  }
  const absent = await host.app('POST', '/sites/elsewhere/events', { name: 'site_changed' });
  expect(absent).toMatchObject({ status: 200, body: { retained: true, published: false, refused_by: 'owner' } });
  await viewer.leave();
});

test('a viewer invokes what its site allows: the handler gets the session, and refusals have messages', async () => {
  await using relay = await startRealRelay();
  await using host = await startHost(relay);
  await host.app('PUT', '/sites/board', DEFINITION);
  const { client, sessionId, leave } = await startViewer(relay, host);
  const answer = await client.invoke('note.add', { text: 'milk' }, { commandId: 'c1' });
  const result = { params: { text: 'milk' }, site: { sessionId, siteId: 'board' } };
  expect(answer).toMatchObject({ outcome: 'completed', commandId: 'c1', result });
  expect(await client.invoke('note.add', { text: 'milk' }, { commandId: 'c1' })).toMatchObject({ result });
  const refusals = [
    ['note.add', { __cooperative_site_id: 'x' }, 'reserved_parameter'],
    ['note.drop', {}, 'site_action_denied'],
  ] as const;
  for (const [action, params, code] of refusals) {
    const refused = client.invoke(action, params);
    await expect(refused).rejects.toMatchObject({
      name: 'SiteError',
      code,
      message: expect.stringMatching(/\w+ .*\./),
    });
  }
  await host.app('PUT', '/sites/board', { ...DEFINITION, capability_profile: {} });
  await expect(client.invoke('note.add')).rejects.toMatchObject({ code: 'site_capability_denied' });
  await leave();
});

test('a stream ends with its reason when the session is closed, the grant revoked, or the site removed', async () => {
  await using relay = await startRealRelay();
  await using host = await startHost(relay);
  await host.app('PUT', '/sites/board', DEFINITION);
  const [closed, revoked, removed] = await Promise.all([1, 2, 3].map(() => startViewer(relay, host)));
  if (!closed || !revoked || !removed) throw new Error('no viewers');
  await host.owner('DELETE', `/site-sessions/${closed.sessionId}`);
  await expect(closed.next()).rejects.toMatchObject({ name: 'SiteError', code: 'session_inactive' });
  await host.owner('DELETE', `/site-sessions/${revoked.sessionId}/grants/${revoked.grantId}`);
  await expect(revoked.next()).rejects.toMatchObject({ name: 'SiteError', code: 'unauthenticated' });
  expect((await host.app('DELETE', '/sites/board')).status).toBe(204);
  await expect(removed.next()).rejects.toMatchObject({ code: 'session_inactive' });
  expect((await host.app('DELETE', '/sites/board')).status).toBe(404);
  const late = new CooperativeSiteBrowserClient({ url: relay.url, sessionId: closed.sessionId, token: closed.token });
  await expect(late.subscribe()[Symbol.asyncIterator]().next()).rejects.toMatchObject({ name: 'SiteError' });
});

test('a host whose link was cut hosts its sites again; until then its application is informed', async () => {
  await using relay = await startRealRelay();
  await using cable = await startTcpProxy(relay.url);
  await using host = await startHost(relay, `${cable.url.replace(/^http/, 'ws')}/connect`);
  await host.app('PUT', '/sites/board', DEFINITION);
  const viewer = await startViewer(relay, host);
  const away = untilState(host.runtime, 'disconnected');
  cable.cut();
  await away;
  const refused = await host.app('POST', '/sites/board/events', { name: 'site_changed', message_id: 'm1' });
  expect(refused).toMatchObject({ status: 503, body: { code: 'runtime_disconnected', message_id: 'm1' } });
  await expect(viewer.client.invoke('note.add')).rejects.toMatchObject({ code: 'session_inactive' });
  // The site is removed at the relay while its host is disconnected. The host still has the definition.
  await host.owner('DELETE', '/sites/board');
  await expect(viewer.next()).rejects.toMatchObject({ code: 'session_inactive' });
  cable.mend();
  await untilState(host.runtime, 'connected');
  await eventually(async () => expect((await host.owner('GET', '/sites/board')).status).toBe(200));
  const published = await host.app('POST', '/sites/board/events', { name: 'site_changed', message_id: 'm1' });
  expect(published).toMatchObject({ status: 200, body: { message_id: 'm1', published: true } });
});

test('a publisher whose instance was replaced is refused, and its event is not retained', async () => {
  await using relay = await startRealRelay();
  await using host = await startHost(relay, relay.link, 'i-1');
  await host.app('PUT', '/sites/board', DEFINITION);
  const frozen = {
    url: relay.link,
    clientId: 'desk',
    instanceId: 'i-0',
    status: host.runtime.status,
    token: () => host.runtime.token(),
  };
  const publisher = createSiteEventPublisher({ runtime: frozen, siteId: 'board' });
  await expect(publisher.publish({ name: 'site_changed' })).rejects.toMatchObject({ code: 'stale_instance' });
  const own = createSiteEventPublisher({ runtime: host.runtime, siteId: 'board' });
  expect(await own.publish({ name: 'site_changed' })).toMatchObject({ published: true });
});

test('a host without the scope is refused, and its application learns why', async () => {
  await using relay = await startRealRelay();
  const token = () => relay.token('alice', 'connect');
  await using runtime = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console' });
  runtime.connect();
  await runtime.ready();
  await expect(runtime.site({ siteId: 'board' }).registered).rejects.toMatchObject({
    name: 'SiteRefusedError',
    code: 'forbidden',
  });
  const publisher = createSiteEventPublisher({ runtime, siteId: 'board' });
  await expect(publisher.publish({ name: 'site_changed' })).rejects.toMatchObject({ code: 'forbidden' });
});
