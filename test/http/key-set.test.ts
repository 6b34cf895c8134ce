/** Tests the key set of an identity provider: when it is fetched, and what happens without it. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT, exportJWK, generateKeyPair, type CryptoKey, type JWK } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openCallboard } from '../../src/callboard.ts';
import { createAuthenticator, type BearerAuthenticator } from '../../src/http/authenticator.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { FakeClock } from '../kit/clock.ts';
import { freePort } from '../kit/free-port.ts';

const BOUND = { issuer: 'https://id.example', audience: 'callboard' };
const MINUTE = 60_000;

type Key = { readonly kid: string; readonly privateKey: CryptoKey; readonly jwk: JWK };

async function keyNamed(kid: string): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' } };
}

let first: Key;
let second: Key;
let server: Server;
let url: string;
/** The answer of the issuer, and the number of times it was asked. */
const issuer = { status: 200, body: '', asked: 0 };

beforeAll(async () => {
  [first, second] = await Promise.all([keyNamed('first'), keyNamed('second')]);
  server = createServer((_request, response) => {
    issuer.asked++;
    response.writeHead(issuer.status, { 'content-type': 'application/json' }).end(issuer.body);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys?secret=hidden`;
});
afterAll(() => void server.close());

let clock: FakeClock;
let relay: BearerAuthenticator;
beforeEach(() => {
  clock = new FakeClock();
  publish(first);
  issuer.asked = 0;
  const none = { adminTokens: [], secret: null };
  relay = createAuthenticator({ ...none, ...BOUND, jwksUrl: url, clock });
});
afterEach(() => {
  issuer.status = 200;
});

function publish(...keys: readonly Key[]): void {
  issuer.status = 200;
  issuer.body = JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });
}

let made = 0;
function tokenOf({ kid, privateKey }: Key, now = clock.now()): Promise<string> {
  const claims = { sub: 'alice', iss: BOUND.issuer, aud: BOUND.audience, exp: Math.floor(now / 1000) + 7200 };
  // Each token is different, so that no verification is remembered.
  return new SignJWT({ ...claims, jti: String(made++) }).setProtectedHeader({ alg: 'ES256', kid }).sign(privateKey);
}

const unavailable = (reason: string) => ({
  code: 'store_unavailable',
  details: { tokenFault: 'keys_unavailable', reason: `The keys at JWKS_URL cannot be read: ${reason}.` },
});

describe('the keys of an issuer', () => {
  it('are fetched once for many tokens, and again after ten minutes', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, () => tokenOf(first)));
    await Promise.all(tokens.map((token) => relay.authenticate(token)));
    await clock.advance(9 * MINUTE);
    await relay.authenticate(await tokenOf(first));
    expect(issuer.asked).toBe(1);
    await clock.advance(MINUTE);
    await relay.authenticate(await tokenOf(first));
    expect(issuer.asked).toBe(2);
  });

  it('are fetched at once for a key that is new', async () => {
    await relay.authenticate(await tokenOf(first));
    await clock.advance(5_000);
    publish(first, second);
    expect(await relay.authenticate(await tokenOf(second))).toMatchObject({ userId: 'alice' });
    expect(issuer.asked).toBe(2);
  });

  it('are fetched for unknown keys once in five seconds', async () => {
    await relay.authenticate(await tokenOf(first));
    const refused = { code: 'unauthenticated', details: { tokenFault: 'key_unknown' } };
    for (let second_ = 0; second_ < 10; second_++) {
      for (let i = 0; i < 5; i++)
        await expect(relay.authenticate(await tokenOf(second))).rejects.toMatchObject(refused);
      await clock.advance(1_000);
    }
    expect(issuer.asked).toBe(2);
    expect(await relay.authenticate(await tokenOf(first))).toMatchObject({ userId: 'alice' });
  });

  it('no longer verify once they are withdrawn', async () => {
    await relay.authenticate(await tokenOf(first));
    publish(second);
    await clock.advance(10 * MINUTE);
    await expect(relay.authenticate(await tokenOf(first))).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  it('are fetched as often, and used as long, when the wall clock is set back', async () => {
    await relay.authenticate(await tokenOf(first));
    clock.stepWall(-60 * MINUTE);
    await clock.advance(5_000);
    publish(second);
    expect(await relay.authenticate(await tokenOf(second))).toMatchObject({ userId: 'alice' });
    expect(issuer.asked).toBe(2);
    await clock.advance(10 * MINUTE);
    await relay.authenticate(await tokenOf(second));
    expect(issuer.asked).toBe(3);
  });

  it('serve for an hour while they cannot be fetched again', async () => {
    await relay.authenticate(await tokenOf(first));
    issuer.status = 503;
    await clock.advance(59 * MINUTE);
    expect(await relay.authenticate(await tokenOf(first))).toMatchObject({ userId: 'alice' });
    await relay.ready?.();
    await clock.advance(MINUTE);
    await expect(relay.authenticate(await tokenOf(first))).rejects.toMatchObject(unavailable('the answer is HTTP 503'));
    await expect(relay.ready?.()).rejects.toMatchObject(unavailable('the answer is HTTP 503'));
  });

  it('are requested at most once a second while they cannot be read, and are used as soon as they can', async () => {
    issuer.status = 500;
    for (let i = 0; i < 20; i++)
      await expect(relay.authenticate(await tokenOf(first))).rejects.toMatchObject(
        unavailable('the answer is HTTP 500'),
      );
    expect(issuer.asked).toBe(1);
    publish(first);
    await clock.advance(1_000);
    expect(await relay.authenticate(await tokenOf(first))).toMatchObject({ userId: 'alice' });
  });

  it.each([
    ['no JSON', '<html>'],
    ['no key set', '{"keys":7}'],
  ])('are unavailable if the answer is %s', async (_says, body) => {
    issuer.body = body;
    await expect(relay.ready?.()).rejects.toMatchObject(unavailable('the answer is not a key set'));
  });
});

describe('a relay whose keys cannot be read', () => {
  it('reports it in /readyz and in the log, without the address, and is ready once they can be read', async () => {
    const lines: unknown[] = [];
    const keep = (...line: unknown[]): void => void lines.push(line);
    const log: Log = { ...silentLog, warn: keep, info: keep };
    await using callboard = await openCallboard({ config: { auth: { ...BOUND, jwksUrl: url } }, clock, log });
    const at = await callboard.listen();
    const readiness = async () => (await fetch(`${at}/readyz`)).json();
    issuer.status = 502;
    const reason = 'The keys at JWKS_URL cannot be read: the answer is HTTP 502.';
    expect(await readiness()).toEqual({ status: 'not_ready', code: 'store_unavailable', reason });
    const token = await tokenOf(first);
    const answer = await fetch(`${at}/users`, { headers: { authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(503);
    const logged = JSON.stringify(lines);
    expect(logged).toContain('the keys that verify tokens are unavailable');
    expect(logged).not.toContain('hidden');
    expect(logged).not.toContain(token);
    publish(first);
    await clock.advance(1_000);
    expect(await readiness()).toEqual({ status: 'ready' });
  });

  it('names a refused connection', async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}/keys`;
    const closed = createAuthenticator({
      ...{ adminTokens: [], secret: null, clock },
      ...{ ...BOUND, jwksUrl: nowhere },
    });
    await expect(closed.ready?.()).rejects.toMatchObject(unavailable('ECONNREFUSED'));
  });
});
