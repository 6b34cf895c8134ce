/** Tests the WebSocket handshake: origins, versions and refusals. */
import { describe, expect, test } from 'vitest';
import { caller, client, startGateway, Peer, upgrade } from './kit/test-gateway.ts';

describe('the origin of a handshake', () => {
  test('may be absent, because browsers always send one', async () => {
    await using at = await startGateway();
    expect((await upgrade(at, {})).status).toBe(101);
  });

  test("may be the relay's own", async () => {
    await using at = await startGateway();
    expect((await upgrade(at, { Origin: `http://127.0.0.1:${at.port}` })).status).toBe(101);
  });

  test("may be on the exact list, besides the relay's own", async () => {
    await using at = await startGateway({ allowedOrigins: ['https://app.example'] });
    expect((await upgrade(at, { Origin: 'https://app.example' })).status).toBe(101);
    expect((await upgrade(at, { Origin: `http://127.0.0.1:${at.port}` })).status).toBe(101);
  });

  test.each([
    ['null', 'null'],
    ['empty', ''],
    ['another site', 'https://evil.example'],
    ['the allowed one as a prefix', 'https://app.example.evil.example'],
    ['the allowed one as a suffix', 'https://evil-app.example'],
    ['a subdomain', 'https://x.app.example'],
    ['another scheme', 'http://app.example'],
    ['another port', 'https://app.example:8443'],
    ['another case', 'https://APP.example'],
    ['a trailing slash', 'https://app.example/'],
    ['two in one', 'https://app.example, https://evil.example'],
    ['a user before the host', 'https://app.example@evil.example'],
    ['any', '*'],
  ])('%s is refused with 403', async (_what, origin) => {
    await using at = await startGateway({ allowedOrigins: ['https://app.example'] });
    const { status, body } = await upgrade(at, { Origin: origin });
    expect(status).toBe(403);
    expect(JSON.parse(body)).toMatchObject({ code: 'forbidden', status: 403 });
    expect(at.gateway.size).toBe(0);
  });

  test("is foreign for the relay's host under another port or scheme", async () => {
    await using at = await startGateway();
    for (const origin of [`http://127.0.0.1:${at.port + 1}`, `https://127.0.0.1:${at.port}`])
      expect((await upgrade(at, { Origin: origin })).status).toBe(403);
  });

  test("is the relay's own in any case, and if a proxy calls its scheme `wss`", async () => {
    await using at = await startGateway({ trustProxy: true });
    expect((await upgrade(at, { Origin: `HTTP://127.0.0.1:${at.port}` })).status).toBe(101);
    const forwarded = {
      'X-Forwarded-Proto': 'wss',
      'X-Forwarded-Host': 'relay.example:443',
      'X-Forwarded-Port': '443',
    };
    expect((await upgrade(at, { Origin: 'https://relay.example', ...forwarded })).status).toBe(101);
  });

  test.each(['chrome-extension://fmkadmapgofadopljbjfkapdkoienihi', 'capacitor://localhost', 'null'])(
    '%s is accepted if it is named, and only then',
    async (origin) => {
      await using named = await startGateway({ allowedOrigins: [origin] });
      expect((await upgrade(named, { Origin: origin })).status).toBe(101);
      await using at = await startGateway();
      expect((await upgrade(at, { Origin: origin })).status).toBe(403);
    },
  );

  test('is compared with forwarded headers only behind a trusted proxy', async () => {
    const forwarded = {
      Origin: 'https://relay.example',
      'X-Forwarded-Proto': 'https, http',
      'X-Forwarded-Host': 'relay.example',
    };
    await using plain = await startGateway();
    expect((await upgrade(plain, forwarded)).status).toBe(403);
    await using behindProxy = await startGateway({ trustProxy: true });
    expect((await upgrade(behindProxy, forwarded)).status).toBe(101);
    expect((await upgrade(behindProxy, { ...forwarded, Origin: 'https://evil.example' })).status).toBe(403);
  });
});

describe('the upgrade', () => {
  test('is refused with 400 without the subprotocol', async () => {
    await using at = await startGateway();
    for (const offered of ['', 'callboard.v2', 'xcallboard.v1', 'CALLBOARD.V1']) {
      const { status, body } = await upgrade(at, { 'Sec-WebSocket-Protocol': offered });
      expect(status).toBe(400);
      if (offered) expect(body).toContain('callboard.v1');
    }
  });

  test('selects the subprotocol among several', async () => {
    await using at = await startGateway();
    const peer = new Peer(at, { protocols: ['other.v3', 'callboard.v1'] });
    await peer.opened;
    expect(peer.ws.protocol).toBe('callboard.v1');
  });

  test('does not negotiate compression, whatever is offered', async () => {
    await using at = await startGateway();
    const peer = new Peer(at, { perMessageDeflate: true });
    await peer.opened;
    expect(peer.ws.extensions).toBe('');
  });

  test('answers a broken handshake instead of keeping it', async () => {
    await using at = await startGateway();
    expect((await upgrade(at, { 'Sec-WebSocket-Key': 'short' })).status).toBe(400);
    expect((await upgrade(at, { 'Sec-WebSocket-Version': '7' })).status).toBeGreaterThanOrEqual(400);
  });

  test('is refused beyond the maximum of sockets without a hello; welcomed links do not count', async () => {
    await using at = await startGateway({ maxUnopened: 1 });
    const one = await client(at);
    await caller(at);
    const silent = new Peer(at);
    await silent.opened;
    const { status, body } = await upgrade(at, {});
    expect(status).toBe(503);
    expect(JSON.parse(body)).toMatchObject({ code: 'store_full', share: 'links' });
    await one.sync();
    silent.ws.close(1000);
    await silent.closed;
    await expect.poll(() => at.gateway.size).toBe(2);
    expect((await upgrade(at, {})).status).toBe(101);
  });

  test('is refused by a closed gateway', async () => {
    await using at = await startGateway();
    await at.gateway.closeAll('draining');
    const { status, body } = await upgrade(at, {});
    expect(status).toBe(503);
    expect(JSON.parse(body).code).toBe('draining');
  });
});
