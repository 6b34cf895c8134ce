/** Tests that the client libraries and a real relay pass JSON on unchanged, even if no JavaScript value can hold it. */
import { describe, expect, test } from 'vitest';
import { createHttpCaller, createLinkCaller, rawJson, type Caller } from '../../src/clients/caller/index.ts';
import { createSiteEventPublisher, startCooperativeSiteControlServer } from '../../src/clients/host/index.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';

/**
 * JSON that no JavaScript value can hold: more digits than a double, integer-like names out of order, and a repeated
 * name.
 */
const TEXT = '{ "id":9007199254740993, "10":1.0, "9":-0, "9":1e400 }';

async function client(relay: RealRelay): Promise<Runtime> {
  const token = () => relay.token('alice', 'connect', 'host');
  const runtime = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console' });
  runtime.handle('back', {}, (_, { paramsText }) => rawJson(paramsText));
  runtime.handle('text', {}, ({ id }, { paramsText }) => ({ id, paramsText }));
  runtime.connect();
  await runtime.ready();
  return runtime;
}

async function read(relay: RealRelay, path: string): Promise<string> {
  const authorization = `Bearer ${await relay.token('alice', 'invoke')}`;
  return (await fetch(relay.url + path, { headers: { authorization } })).text();
}

const callers: readonly [string, (relay: RealRelay) => Caller][] = [
  ['HTTP', ({ url, token }) => createHttpCaller({ url, token: () => token('alice', 'invoke') })],
  ['a link', ({ link, token }) => createLinkCaller({ url: link, token: () => token('alice', 'invoke') })],
];

describe.each(callers)('raw JSON, from a caller over %s', (_, createCaller) => {
  test('params and result are sent unchanged, and a handler gets both text and value', async () => {
    await using relay = await startRealRelay();
    await using _runtime = await client(relay);
    await using caller = createCaller(relay);
    const target = { userId: 'alice', clientId: 'desk', action: 'text' };
    const reported = await caller.invoke(target, rawJson(TEXT));
    expect(reported).toMatchObject({ outcome: 'completed', result: { id: 9007199254740992, paramsText: TEXT } });
    await caller.invoke({ ...target, action: 'back' }, rawJson(TEXT), { commandId: 'c1' });
    expect(await read(relay, '/commands/alice/desk/c1')).toContain(`"result":${TEXT}`);
    const other = caller.invoke({ ...target, action: 'back' }, rawJson(TEXT.replace('993', '992')), {
      commandId: 'c1',
    });
    await expect(other).rejects.toMatchObject({ code: 'command_conflict' });
    const same = '{"9":-0e1,"9":10e399,"10":1,"\\u0069d":9007199254740993}';
    await caller.invoke({ ...target, action: 'back' }, rawJson(same), { commandId: 'c1' });
  });
});

test('text that is not JSON is refused', () => {
  for (const text of ['', '{', '01', '{"a":NaN}', "'a'"]) expect(() => rawJson(text)).toThrow(SyntaxError);
});

test('a host publishes events unchanged, and so does the control server', async () => {
  await using relay = await startRealRelay();
  await using runtime = await client(relay);
  await runtime.site({ siteId: 'board' }).registered;
  const publisher = createSiteEventPublisher({ runtime, siteId: 'board' });
  await publisher.publish({ name: 'changed', data: rawJson(TEXT), messageId: 'm1' });
  await using control = await startCooperativeSiteControlServer({ runtime, token: 'local', port: 0 });
  const answer = await fetch(`${control.url}/sites/board/events`, {
    method: 'POST',
    headers: { authorization: 'Bearer local', 'content-type': 'application/json' },
    body: `{"name":"changed","message_id":"m2","data":${TEXT}}`,
  });
  expect(answer.status).toBe(200);
  const query = '{ messages(stream: "alice/sites/board/events") { nodes { id: messageId payload(include: true) } } }';
  const history = await fetch(`${relay.url}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await relay.token('alice', 'invoke')}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const text = await history.text();
  for (const id of ['m1', 'm2']) expect(text).toContain(`{"id":"${id}","payload":{"name":"changed","data":${TEXT}}}`);
});
