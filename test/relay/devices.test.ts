/** Tests how devices are enrolled, renew their tokens and end, over REST, GraphQL and links; and attacks on that. */
import { describe, expect, it } from 'vitest';
import { newDeviceKey, type DeviceKey } from '../kit/device-key.ts';
import { HAS_DEVICES } from '../kit/store.ts';
import type { Answer } from '../http/kit/http-relay.ts';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

const KIOSK = { name: 'Kiosk 7', client_type: 'browser' };

type Device = {
  readonly key: DeviceKey;
  begin(claims?: object): Promise<Answer>;
  ask(): Promise<Answer>;
};

async function newDevice(relay: TestRelay): Promise<Device> {
  const key = await newDeviceKey(() => relay.clock.now());
  return {
    key,
    begin: async (claims = {}) =>
      relay.post('/enrolments', { ...KIOSK, ...claims, proof: await key.prove('enrol') }, 'nobody'),
    ask: async () => relay.post('/devices/token', { proof: await key.prove('token') }, 'nobody'),
  };
}

const codeOf = async (begun: Promise<Answer>): Promise<string> => {
  const { status, json } = await begun;
  expect([status, json?.['user_code']]).toEqual([201, expect.stringMatching(/^[B-Z]{4}-[B-Z]{4}$/)]);
  return String(json?.['user_code']);
};
const decide = (relay: TestRelay, body: object, requester = 'alice') =>
  relay.post('/enrolments/decide', { decision: 'confirm', ...body }, requester);
const statusOf = ({ status, json }: Answer): unknown => [status, json?.['code']];

/** Enrols a device of alice, and returns it with its token. */
async function enrolled(relay: TestRelay, claims: object = {}) {
  const device = await newDevice(relay);
  const code = await codeOf(device.begin(claims));
  const { json } = await decide(relay, { code });
  const { client_id } = json?.['device'] as { client_id: string };
  const token = String((await device.ask()).json?.['token']);
  relay.know(client_id, token);
  return { ...device, code, token, clientId: client_id };
}

it.runIf(!HAS_DEVICES)('is refused clearly by a store that keeps no devices', async () => {
  await using relay = await startTestRelay();
  const device = await newDevice(relay);
  expect(statusOf(await device.begin())).toEqual([501, 'not_supported']);
  expect((await relay.rest('/devices')).json?.['items']).toEqual([]);
});

describe.runIf(HAS_DEVICES)('a device', () => {
  it('shows a code, gets a token when a person has confirmed it, and connects as its client', async () => {
    await using relay = await startTestRelay();
    const device = await newDevice(relay);
    expect(statusOf(await device.ask())).toEqual([404, 'not_found']);
    const code = await codeOf(device.begin({ actions: ['page.*'] }));
    expect((await device.ask()).json).toMatchObject({ state: 'open', token: null });
    const said = await relay.post('/enrolments/lookup', { code: code.toLowerCase().replace('-', ' ') });
    expect(said.json).toMatchObject({ name: 'Kiosk 7', client_type: 'browser', actions: ['page.*'] });
    const decided = await decide(relay, { code });
    expect(decided.json?.['device']).toMatchObject({
      ...{ user_id: 'alice', client_id: 'kiosk-7', enrolled_by: 'user:alice', used_at: null, revoked: false },
    });
    const { json } = await device.ask();
    expect(json).toMatchObject({ state: 'confirmed', user_id: 'alice', client_id: 'kiosk-7' });
    relay.know('kiosk-7', String(json?.['token']));
    const tab = await relay.client({
      user: 'kiosk-7',
      client_id: 'kiosk-7',
      payload: { actions: [{ name: 'page.show' }] },
    });
    await tab.sync();
    const devices = '{ devices { nodes { clientId connection { status } } } }';
    expect((await relay.data(devices, { requester: 'alice' }))['devices'].nodes).toEqual([
      { clientId: 'kiosk-7', connection: { status: 'CONNECTED' } },
    ]);
    const { items } = (await relay.rest('/devices', { requester: 'alice' })).json ?? {};
    expect(items).toMatchObject([{ client_id: 'kiosk-7', used_at: expect.any(String) }]);
  });

  it('has a token for nothing but its client and its actions', async () => {
    await using relay = await startTestRelay();
    const { clientId } = await enrolled(relay, { actions: ['page.*'] });
    const hello = { user: clientId, client_id: clientId };
    await expect(relay.client({ ...hello, client_id: 'other' })).rejects.toThrow();
    await expect(relay.client({ ...hello, client_type: 'console' })).rejects.toThrow();
    await expect(relay.client({ ...hello, payload: { actions: [{ name: 'door.open' }] } })).rejects.toThrow();
    const tab = await relay.client({ ...hello, payload: { actions: [{ name: 'page.show' }] } });
    tab.send({ type: 'actions' }, { actions: [{ name: 'door.open' }] });
    expect(await tab.next('refused')).toMatchObject({ code: 'forbidden' });
    for (const path of ['/connections', '/devices', '/enrolments/decide'])
      expect(
        (await relay.rest(path, { requester: clientId, method: path.includes('decide') ? 'POST' : 'GET' })).status,
      ).toBe(403);
    expect((await decide(relay, { code: 'BBBB-BBBB' }, clientId)).status).toBe(403);
  });

  it('renews its token, and gets none when it was removed', async () => {
    await using relay = await startTestRelay();
    const { ask, clientId, token } = await enrolled(relay);
    const tab = await relay.client({ user: clientId, client_id: clientId });
    await relay.clock.advance(1000);
    const renewed = String((await ask()).json?.['token']);
    expect(renewed).not.toBe(token);
    const removed = await relay.rest(`/devices/alice/${clientId}?reason=lost`, {
      method: 'DELETE',
      requester: 'alice',
    });
    expect([removed.status, removed.json]).toMatchObject([200, { links: 1, silent: [] }]);
    expect(await tab.closed).toMatchObject({ code: 4403 });
    for (const given of [token, renewed]) {
      relay.know(clientId, given);
      await expect(relay.client({ user: clientId, client_id: clientId })).rejects.toThrow();
      expect((await relay.ask('/connections', { token: given })).status).toBe(401);
    }
    expect(statusOf(await ask())).toEqual([404, 'not_found']);
    expect((await relay.rest('/devices')).json?.['items']).toEqual([]);
  });

  it('gets no token after a revocation of its user or its client, until it is enrolled again', async () => {
    await using relay = await startTestRelay();
    const { ask, begin, clientId, token } = await enrolled(relay);
    await relay.clock.advance(1000);
    const later = String((await ask()).json?.['token']);
    await relay.post('/revocations', { user_id: 'alice', client_id: clientId, reason: 'lost' }, 'admin');
    expect(statusOf(await ask())).toEqual([403, 'forbidden']);
    for (const given of [token, later]) expect((await relay.ask('/connections', { token: given })).status).toBe(401);
    expect((await relay.rest('/devices')).json?.['items']).toMatchObject([{ client_id: clientId, revoked: true }]);
    await relay.clock.advance(1000);
    await decide(relay, { code: await codeOf(begin()) });
    relay.know('again', String((await ask()).json?.['token']));
    const tab = await relay.client({ user: 'again', client_id: clientId });
    await tab.sync();
  });

  it('is renamed, and each act of an administrator is in the audit', async () => {
    await using relay = await startTestRelay();
    const device = await newDevice(relay);
    const code = await codeOf(device.begin());
    expect((await decide(relay, { code }, 'admin')).status).toBe(403);
    expect((await decide(relay, { code, user_id: 'bob', client_id: 'hall' }, 'admin')).status).toBe(200);
    const body = JSON.stringify({ name: 'Hall' });
    const headers = { 'content-type': 'application/json' };
    const path = '/devices/bob/hall';
    expect((await relay.rest(path, { method: 'PUT', body, headers, requester: 'alice' })).status).toBe(404);
    expect((await relay.rest(path, { method: 'PUT', body, headers })).json).toMatchObject({ name: 'Hall' });
    const { auditEvents } = await relay.data(
      '{ auditEvents { nodes { action outcome subject { userId clientId } } } }',
    );
    expect(auditEvents.nodes).toEqual([
      { action: 'RENAME', outcome: 'renamed', subject: { userId: 'bob', clientId: 'hall' } },
      { action: 'ENROL', outcome: 'confirmed', subject: { userId: 'bob', clientId: null } },
    ]);
  });

  it('that a person denies gets nothing', async () => {
    await using relay = await startTestRelay();
    const device = await newDevice(relay);
    const code = await codeOf(device.begin());
    expect((await decide(relay, { code, decision: 'deny' })).json).toEqual({ device: null });
    expect(statusOf(await device.ask())).toEqual([403, 'forbidden']);
    expect((await decide(relay, { code })).status).toBe(404);
  });
});

describe.runIf(HAS_DEVICES)('an attack', () => {
  it('by guessing codes ends after five wrong ones, also if they are sent at once', async () => {
    await using relay = await startTestRelay();
    const code = await codeOf((await newDevice(relay)).begin());
    const wrong = Array.from({ length: 8 }, (_, at) => `BBBB-BBB${'BCDFGHJK'.charAt(at)}`);
    const answers = await Promise.all(wrong.map((one) => relay.post('/enrolments/lookup', { code: one })));
    const codes = answers.map(({ json }) => json?.['code']);
    expect(codes.filter((one) => one === 'not_found')).toHaveLength(5);
    expect(codes.filter((one) => one === 'rate_limited')).toHaveLength(3);
    // The right code is refused too, over each path; another person is not.
    expect((await relay.post('/enrolments/lookup', { code })).status).toBe(429);
    expect((await decide(relay, { code })).status).toBe(429);
    expect((await relay.post('/enrolments/lookup', { code }, 'bob')).status).toBe(200);
    await relay.clock.advance(600_000);
    expect((await relay.post('/enrolments/lookup', { code })).status).toBe(404);
  });

  it('by right codes is no guessing: they are not counted', async () => {
    await using relay = await startTestRelay();
    const code = await codeOf((await newDevice(relay)).begin());
    for (let at = 0; at < 10; at++) expect((await relay.post('/enrolments/lookup', { code })).status).toBe(200);
  });

  it('by two persons who decide at once: one decision counts', async () => {
    await using relay = await startTestRelay();
    const device = await newDevice(relay);
    const code = await codeOf(device.begin());
    const answers = await Promise.all(
      ['alice', 'bob', 'carol', 'dave'].map((person) => decide(relay, { code }, person)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const [device1] = (await relay.rest('/devices')).json?.['items'] as { user_id: string }[];
    expect((await relay.rest('/devices')).json?.['items']).toHaveLength(1);
    expect((await device.ask()).json?.['user_id']).toBe(device1?.user_id);
  });

  it('by two devices of one name: each gets a client of its own, and none that another has', async () => {
    await using relay = await startTestRelay();
    const devices = [await newDevice(relay), await newDevice(relay), await newDevice(relay)];
    const codes = await Promise.all(devices.map((device) => codeOf(device.begin())));
    expect(new Set(codes).size).toBe(3);
    const [first, second, third] = codes;
    const both = await Promise.all([decide(relay, { code: first }), decide(relay, { code: second })]);
    const ids = both.map(({ json }) => (json?.['device'] as { client_id: string }).client_id);
    expect(new Set(ids).size).toBe(2);
    expect(ids).toContain('kiosk-7');
    expect((await decide(relay, { code: third, client_id: 'kiosk-7' })).status).toBe(400);
    expect((await decide(relay, { code: third, client_id: 'kiosk-8' })).status).toBe(200);
  });

  it('with a proof that was used, is old, is for another purpose, or of another key', async () => {
    await using relay = await startTestRelay();
    const { key, token } = await enrolled(relay);
    const ask = async (proof: string | Promise<string>) =>
      relay.post('/devices/token', { proof: await proof }, 'nobody');
    const used = await key.prove('token');
    expect((await ask(used)).status).toBe(200);
    expect(statusOf(await ask(used))).toEqual([401, 'unauthenticated']);
    const at = relay.clock.now();
    const other = await newDeviceKey(() => relay.clock.now());
    for (const proof of [
      key.prove('token', { now: at - 301_000 }),
      key.prove('token', { now: at + 301_000 }),
      key.prove('enrol'),
      key.prove('token', { audience: 'another relay' }),
      key.prove('token', { type: 'JWT' }),
      other.prove('token', { jwk: key.jwk }),
      token,
      'no proof',
    ])
      expect(statusOf(await ask(proof))).toEqual([401, 'unauthenticated']);
    const begun = relay.post('/enrolments', { ...KIOSK, proof: await key.prove('token') }, 'nobody');
    expect((await begun).status).toBe(401);
  });

  it('with a proof that is replayed at once on many connections: one gets a token', async () => {
    await using relay = await startTestRelay();
    const { key } = await enrolled(relay);
    const proof = await key.prove('token');
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => relay.post('/devices/token', { proof }, 'nobody')),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it('by a user on the devices of another one finds nothing', async () => {
    await using relay = await startTestRelay();
    const { clientId } = await enrolled(relay);
    const path = `/devices/alice/${clientId}`;
    expect((await relay.rest(path, { method: 'DELETE', requester: 'bob' })).status).toBe(404);
    expect((await relay.rest('/devices?user_id=alice', { requester: 'bob' })).status).toBe(404);
    expect((await relay.rest('/devices', { requester: 'bob' })).json?.['items']).toEqual([]);
    const code = await codeOf((await newDevice(relay)).begin());
    expect((await decide(relay, { code, user_id: 'alice' }, 'bob')).status).toBe(404);
    for (const scope of ['bob:invoke', 'bob:connect', 'bob:mcp'])
      expect((await decide(relay, { code }, scope)).status).toBe(403);
  });

  it('by many open codes of one network is bounded', async () => {
    await using relay = await startTestRelay();
    for (let at = 0; at < 20; at++) await codeOf((await newDevice(relay)).begin());
    expect(statusOf(await (await newDevice(relay)).begin())).toEqual([429, 'capacity_exceeded']);
  });

  it.each(['<b>Kiosk</b>', 'a\nb', '', ' a', 'x'.repeat(65)])('by the name %j is refused', async (name) => {
    await using relay = await startTestRelay();
    expect((await (await newDevice(relay)).begin({ name })).status).toBe(400);
  });

  it('that reads the log finds no code, proof or token', async () => {
    await using relay = await startTestRelay();
    const { code, token } = await enrolled(relay);
    const other = await codeOf((await newDevice(relay)).begin());
    await relay.data(`mutation { lookUpEnrolment(userCode: "${other}") { __typename } }`, { requester: 'alice' });
    await relay.post('/enrolments/decide', { code: other, decision: 'maybe' });
    await relay.post('/enrolments/lookup', { code: 'ZZZZ-ZZZZ' });
    const log = relay.lines.join('\n');
    expect(log).toContain('a device was enrolled');
    for (const secret of [code, code.replace('-', ''), other, 'ZZZZ-ZZZZ', token]) expect(log).not.toContain(secret);
  });
});
