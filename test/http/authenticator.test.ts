/** Tests which tokens a relay accepts, and which principal each one proves. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT, exportJWK, generateKeyPair, UnsecuredJWT, type CryptoKey, type JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Principal } from '../../src/core/auth/principal.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createTokenGuard } from '../../src/http/token-guard.ts';
import { createAuthenticator, type AuthOptions } from '../../src/http/authenticator.ts';
import { signToken } from '../../src/http/tokens.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { FakeClock } from '../kit/clock.ts';

/** The address from which all tokens of a test are sent. */
const ADDRESS = '192.0.2.1';
const SECRET = 'a secret of more than thirty-two bytes';
const OTHER = 'another secret of more than thirty-two';
const TOKENS = ['the-first-admin-token', 'the-second-admin-token-which-is-longer'];

const clock = new FakeClock();
const seconds = Math.floor(clock.now() / 1000);
const bytes = (secret: string): Uint8Array => new TextEncoder().encode(secret);

function authenticator(over: Partial<AuthOptions> = {}) {
  return createAuthenticator({
    adminTokens: TOKENS,
    secret: SECRET,
    jwksUrl: null,
    issuer: null,
    audience: null,
    clock,
    ...over,
  });
}

type Verdict = string | Principal | null;
/** Resolves with the reason why a token is invalid. */
async function faultOf(token: string, over: Partial<AuthOptions> = {}): Promise<unknown> {
  const refused: unknown = await authenticator(over)
    .authenticate(token)
    .catch((error: unknown) => error);
  return refused instanceof CallboardError ? refused.details.tokenFault : null;
}

async function verdict(token: string, over: Partial<AuthOptions> = {}): Promise<Verdict> {
  try {
    return await authenticator(over).authenticate(token);
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    return `${error.status} ${error.code}`;
  }
}

function hs(claims: JWTPayload, secret = SECRET, alg = 'HS256'): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg }).sign(bytes(secret));
}

const good: JWTPayload = { sub: 'alice', scope: 'connect invoke', exp: seconds + 60 };
const without = (name: string): JWTPayload => Object.fromEntries(Object.entries(good).filter(([key]) => key !== name));

describe('configured admin tokens', () => {
  it('are administrators without an expiry', async () => {
    expect(await verdict(TOKENS[0] ?? '')).toEqual({ kind: 'admin', name: 'token-1', expiresAt: null });
    expect(await verdict(TOKENS[1] ?? '')).toEqual({ kind: 'admin', name: 'token-2', expiresAt: null });
  });

  it.each(['', 'x', 'the-first-admin-toke', 'the-first-admin-tokenx', 'THE-FIRST-ADMIN-TOKEN', 'é'.repeat(4000)])(
    'refuse %j, whatever its length',
    async (token) => {
      expect(await verdict(token)).toBe('401 unauthenticated');
    },
  );

  it('carry their names', async () => {
    const adminTokens = ['ops-1=the-token-of-the-operators', 'the-second-token==', '9a=b-is-no-name-but-a-token'];
    const named = (token: string) => verdict(token, { adminTokens });
    expect(await named('the-token-of-the-operators')).toEqual({ kind: 'admin', name: 'ops-1', expiresAt: null });
    expect(await named('the-second-token==')).toMatchObject({ name: 'token-2' });
    expect(await named('9a=b-is-no-name-but-a-token')).toMatchObject({ name: 'token-3' });
    expect(await named('ops-1=the-token-of-the-operators')).toBe('401 unauthenticated');
    expect(await named('ops-1')).toBe('401 unauthenticated');
  });

  it('are recalled before anything is verified', () => {
    expect(authenticator().recall(TOKENS[0] ?? '')).toMatchObject({ kind: 'admin' });
    expect(authenticator().recall('x'.repeat(9000))).toBeNull();
  });

  it('do not exist when none are configured', async () => {
    expect(await verdict('', { adminTokens: [] })).toBe('401 unauthenticated');
  });

  it('make a request without a token anonymous', async () => {
    expect(await authenticator().authenticate(null)).toBeNull();
  });
});

describe('tokens signed with the secret', () => {
  it('name a user with its known scopes and their expiry', async () => {
    const token = await hs({ ...good, scope: 'connect invoke host unknown Connect', exp: seconds + 1.5 });
    expect(await verdict(token)).toEqual({
      kind: 'user',
      userId: 'alice',
      scopes: new Set(['connect', 'invoke', 'host']),
      expiresAt: clock.now() + 31_500,
      token: { id: null, issuedAt: null },
    });
  });

  it('have the id and the time of issue by which they can be revoked', async () => {
    const token = { id: 't1', issuedAt: (seconds - 5) * 1000 };
    expect(await verdict(await hs({ ...good, jti: 't1', iat: seconds - 5 }))).toMatchObject({ token });
    const long = await hs({ ...good, jti: 'x'.repeat(257) });
    expect(await verdict(long)).toMatchObject({ token: { id: null } });
  });

  it('may come from a clock that is up to 30 seconds behind or ahead', async () => {
    expect(await verdict(await hs({ ...good, exp: seconds - 29 }))).toMatchObject({ expiresAt: clock.now() + 1000 });
    // Some issuers write the time as they measure it. A client would not understand a welcome with parts of milliseconds.
    expect(await verdict(await hs({ ...good, exp: seconds - 29 + 0.0123456 }))).toMatchObject({
      expiresAt: clock.now() + 1012,
    });
    expect(await verdict(await hs({ ...good, nbf: seconds + 30 }))).toMatchObject({ userId: 'alice' });
  });

  it.each<[string, JWTPayload]>([
    ['scope, a text', { ...good, scope: 'connect invoke' }],
    ['scope, a list', { ...good, scope: ['connect', 'invoke'] }],
    ['scp, a text', { ...without('scope'), scp: 'connect invoke' }],
    ['scp, a list', { ...without('scope'), scp: ['connect', 'invoke', 'other'] }],
    ['permissions', { ...without('scope'), permissions: ['connect', 'invoke'] }],
    ['the first of several', { ...good, scope: 'connect invoke', scp: 'host', permissions: ['admin'] }],
  ])('hold their scopes in %s', async (_says, claims) => {
    expect(await verdict(await hs(claims))).toMatchObject({ kind: 'user', scopes: new Set(['connect', 'invoke']) });
  });

  it('hold no scope of a later claim, even if the first is empty', async () => {
    const claims = { ...good, scope: '', scp: ['connect'], permissions: ['admin'] };
    expect(await verdict(await hs(claims))).toMatchObject({ kind: 'user', scopes: new Set() });
  });

  it('are read by their own claims, whatever is set for those of a key set', async () => {
    const over = { userClaim: 'email', scopeClaim: 'roles', scopePrefix: 'callboard:' };
    expect(await verdict(await hs({ ...good, email: 'eve@example.com', roles: ['admin'] }), over)).toMatchObject({
      userId: 'alice',
      scopes: new Set(['connect', 'invoke']),
    });
  });

  it('are what signToken makes', async () => {
    const made = { secret: SECRET, user: 'zoë', scopes: ['host'], ttlSeconds: 5, now: clock.now() };
    expect(await verdict(await signToken(made))).toMatchObject({ userId: 'zoë', expiresAt: clock.now() + 35_000 });
  });

  it('make administrators by the scope admin', async () => {
    const token = await hs({ ...good, scope: 'connect admin' });
    expect(await verdict(token)).toMatchObject({ kind: 'admin', name: 'alice', expiresAt: clock.now() + 90_000 });
  });

  it.each([
    ['no scope', without('scope')],
    ['a scope that is a number', { ...good, scope: 7 }],
    ['a list of scopes that are no texts', { ...good, scope: [['connect'], 7, null] }],
    ['a scope with other separators', { ...good, scope: 'connect,invoke' }],
  ])('with %s hold no scope', async (_says, claims) => {
    expect(await verdict(await hs(claims))).toMatchObject({ kind: 'user', scopes: new Set() });
  });

  it.each<[string, string, () => Promise<string> | string]>([
    ['signed with a foreign secret', 'unauthenticated', () => hs(good, OTHER)],
    ['of another HMAC', 'unauthenticated', () => hs(good, SECRET.repeat(2), 'HS512')],
    ['expired', 'unauthenticated', () => hs({ ...good, exp: seconds - 31 })],
    ['expired 30 seconds ago', 'unauthenticated', () => hs({ ...good, exp: seconds - 30 })],
    ['without exp', 'unauthenticated', () => hs(without('exp'))],
    ['with an exp that is no number', 'unauthenticated', () => raw({ ...good, exp: '99999999999' })],
    ['not yet valid', 'unauthenticated', () => hs({ ...good, nbf: seconds + 31 })],
    ['without sub', 'unauthenticated', () => hs(without('sub'))],
    ['with an empty sub', 'invalid_user', () => hs({ ...good, sub: '' })],
    ['with a sub of other case in an address', 'invalid_user', () => hs({ ...good, sub: 'Alice@Example.com' })],
    ['with a sub that is not NFC', 'invalid_user', () => hs({ ...good, sub: 'zoe\u0308' })],
    ['with a sub with a slash', 'invalid_user', () => hs({ ...good, sub: 'a/b' })],
    ['with a sub with spaces around', 'invalid_user', () => hs({ ...good, sub: ' alice' })],
    ['with a sub of 129 characters', 'invalid_user', () => hs({ ...good, sub: 'a'.repeat(129) })],
    ['with a sub with a control character', 'invalid_user', () => hs({ ...good, sub: 'a\u0000' })],
    ['with alg none', 'unauthenticated', () => new UnsecuredJWT(good).encode()],
    [
      'with alg none and the signature of a good one',
      'unauthenticated',
      async () => swapHeader(await hs(good), { alg: 'none' }),
    ],
    ['with alg None in other case', 'unauthenticated', async () => swapHeader(await hs(good), { alg: 'nOnE' })],
    ['with a changed payload', 'unauthenticated', async () => swapPayload(await hs(good), { ...good, sub: 'bob' })],
    [
      'with an alg that is a property of objects',
      'unauthenticated',
      async () => swapHeader(await hs(good), { alg: 'constructor' }),
    ],
    [
      'with a critical header',
      'unauthenticated',
      async () => swapHeader(await hs(good), { alg: 'HS256', crit: ['b64'], b64: false }),
    ],
    ['of two parts', 'unauthenticated', async () => (await hs(good)).split('.').slice(0, 2).join('.')],
    ['of dots', 'unauthenticated', () => '..'],
    ['longer than 8192 characters', 'unauthenticated', () => hs({ ...good, pad: 'x'.repeat(8192) })],
  ])('%s are refused: 401 %s', async (_says, code, make) => {
    expect(await verdict(await make())).toBe(`401 ${code}`);
  });

  it('report for the log why they are refused', async () => {
    const bound = { issuer: 'https://id.example', audience: 'callboard' };
    const claims = { ...good, iss: bound.issuer, aud: bound.audience };
    expect({
      expired: await faultOf(await hs({ ...claims, exp: seconds - 30 }), bound),
      not_yet_valid: await faultOf(await hs({ ...claims, nbf: seconds + 31 }), bound),
      issuer: await faultOf(await hs({ ...claims, iss: 'other' }), bound),
      audience: await faultOf(await hs({ ...claims, aud: 'other' }), bound),
      claims: await faultOf(await hs({ ...without('exp'), iss: bound.issuer, aud: bound.audience }), bound),
      signature: await faultOf(await hs(claims, OTHER), bound),
      subject: await faultOf(await hs({ ...claims, sub: 'a/b' }), bound),
      algorithm: await faultOf(swapHeader(await hs(claims), { alg: 'none' }), bound),
      malformed: await faultOf('nothing like a token'),
      long: await faultOf('x'.repeat(9000)),
      good: await faultOf(await hs(claims), bound),
    }).toEqual({
      ...{ expired: 'expired', not_yet_valid: 'not_yet_valid', issuer: 'issuer', audience: 'audience' },
      ...{ claims: 'claims', signature: 'signature', subject: 'subject', algorithm: 'algorithm' },
      ...{ malformed: 'malformed', long: 'malformed', good: null },
    });
  });

  it('must have the configured issuer and audience', async () => {
    const bound = { issuer: 'https://id.example', audience: 'callboard' };
    const claims = { ...good, iss: bound.issuer, aud: bound.audience };
    expect(await verdict(await hs(claims), bound)).toMatchObject({ userId: 'alice' });
    expect(await verdict(await hs({ ...claims, aud: ['other', 'callboard'] }), bound)).toMatchObject({
      userId: 'alice',
    });
    for (const wrong of [good, { ...claims, iss: 'https://evil.example' }, { ...claims, aud: 'another' }]) {
      expect(await verdict(await hs(wrong), bound)).toBe('401 unauthenticated');
    }
  });

  it('are refused when no secret is configured', async () => {
    expect(await verdict(await hs(good), { secret: null })).toBe('401 unauthenticated');
  });

  it('are cached without another check, but not beyond their expiry', async () => {
    const own = new FakeClock();
    const auth = authenticator({ clock: own });
    const token = await hs({ ...good, exp: Math.floor(own.now() / 1000) + 10 });
    expect(auth.recall(token)).toBeNull();
    await auth.authenticate(token);
    expect(auth.recall(token)).toMatchObject({ userId: 'alice' });
    await own.advance(39_000);
    expect(auth.recall(token)).toMatchObject({ userId: 'alice' });
    await own.advance(1_000);
    expect(auth.recall(token)).toBeNull();
    await expect(auth.authenticate(token)).rejects.toMatchObject({ code: 'unauthenticated' });
  });
});

describe('tokens signed by a key set', () => {
  const bound = { issuer: 'https://id.example', audience: 'callboard' };
  const claims = { ...good, iss: bound.issuer, aud: bound.audience };
  let keys: { publicKey: CryptoKey; privateKey: CryptoKey };
  let foreign: { privateKey: CryptoKey };
  let server: Server;
  let jwksUrl: string;
  let fetched = 0;
  let pem: string;

  beforeAll(async () => {
    keys = await generateKeyPair('RS256', { extractable: true });
    foreign = await generateKeyPair('RS256');
    const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' };
    pem = JSON.stringify(jwk);
    server = createServer((request, response) => {
      fetched++;
      response.statusCode = request.url === '/keys' ? 200 : 500;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ keys: [jwk] }));
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  });
  afterAll(() => void server.close());

  const rs = (payload: JWTPayload, key = keys.privateKey, kid = 'one'): Promise<string> =>
    new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid }).sign(key);

  it('name their user', async () => {
    expect(await verdict(await rs(claims), { ...bound, jwksUrl })).toMatchObject({ userId: 'alice' });
  });

  it.each<[string, () => Promise<string>]>([
    ['of a foreign key', () => rs(claims, foreign.privateKey)],
    ['of an unknown key id', () => rs(claims, keys.privateKey, 'two')],
    ['without issuer', () => rs({ ...good, aud: bound.audience })],
    ['of another issuer', () => rs({ ...claims, iss: 'https://evil.example' })],
    ['without audience', () => rs({ ...good, iss: bound.issuer })],
    ['for another audience', () => rs({ ...claims, aud: 'another' })],
    ['signed HS256 with the public key', () => hs(claims, pem)],
    [
      'whose header calls a signature by key RS256 HS256',
      async () => swapHeader(await rs(claims), { alg: 'HS256', kid: 'one' }),
    ],
  ])('%s are refused', async (_says, make) => {
    expect(await verdict(await make(), { ...bound, jwksUrl })).toBe('401 unauthenticated');
    expect(await verdict(await make(), { ...bound, jwksUrl, secret: null })).toBe('401 unauthenticated');
  });

  it('report why they are refused, too', async () => {
    const with_ = { ...bound, jwksUrl };
    expect(await faultOf(await rs(claims, foreign.privateKey), with_)).toBe('signature');
    expect(await faultOf(await rs(claims, keys.privateKey, 'two'), with_)).toBe('key_unknown');
    expect(await faultOf(await rs(claims), { ...with_, jwksUrl: jwksUrl.replace('/keys', '/broken') })).toBe(
      'keys_unavailable',
    );
  });

  it('of unknown key ids cost no request for the keys each and no verification, and delay no good token', async () => {
    const relay = createTokenGuard({ clock: new FakeClock(), log: silentLog, metrics: createMetrics() }).around(
      authenticator({ ...bound, jwksUrl }),
    );
    const known = await rs(claims);
    const verify = vi.spyOn(crypto.subtle, 'verify');
    fetched = 0;
    const unknown = (index: number): string => swapHeader(known, { alg: 'RS256', kid: `unknown-${index}` });
    const refused = { code: 'unauthenticated', details: { tokenFault: 'key_unknown' } };
    const shown: Promise<unknown>[] = [];
    const show = (count: number): void => {
      for (let index = 0; index < count; index++)
        shown.push(relay.authenticate(unknown(shown.length), ADDRESS).catch((error: unknown) => error));
    };
    show(500);
    const good = relay.authenticate(known, ADDRESS);
    show(500);
    expect(await good).toMatchObject({ userId: 'alice' });
    for (const each of await Promise.all(shown)) expect(each).toMatchObject(refused);
    await expect(relay.authenticate(unknown(1_000), ADDRESS)).rejects.toMatchObject(refused);
    // The keys are read once, and not again for half a minute. The address is not slowed down.
    expect([fetched, verify.mock.calls.length]).toEqual([1, 1]);
    verify.mockRestore();
  });

  it('name the user by USER_CLAIM, and an email address only if it is verified', async () => {
    const own = { ...without('sub'), iss: bound.issuer, aud: bound.audience, oid: 'u-17' };
    expect(await verdict(await rs(own), { ...bound, jwksUrl, userClaim: 'oid' })).toMatchObject({ userId: 'u-17' });
    expect(await verdict(await rs(claims), { ...bound, jwksUrl, userClaim: 'oid' })).toBe('401 unauthenticated');
    const byEmail = { ...bound, jwksUrl, userClaim: 'email' };
    const address = { ...own, email: 'zoe@example.com' };
    expect(await verdict(await rs({ ...address, email_verified: true }), byEmail)).toMatchObject({
      userId: 'zoe@example.com',
    });
    for (const email_verified of [undefined, false, 'true', 1])
      expect(await faultOf(await rs({ ...address, email_verified }), byEmail)).toBe('email_unverified');
    expect(await faultOf(await rs({ ...own, oid: 17 }), { ...bound, jwksUrl, userClaim: 'oid' })).toBe('subject');
  });

  it('hold the scopes of SCOPE_CLAIM alone, and only those with SCOPE_PREFIX', async () => {
    const scoped = { ...bound, jwksUrl, scopeClaim: 'roles' };
    const named = { ...claims, scope: 'admin', roles: ['callboard:connect', 'invoke', 'callboard:'] };
    expect(await verdict(await rs(named), scoped)).toMatchObject({ kind: 'user', scopes: new Set(['invoke']) });
    expect(await verdict(await rs(named), { ...scoped, scopePrefix: 'callboard:' })).toMatchObject({
      kind: 'user',
      scopes: new Set(['connect']),
    });
    const admin = { ...claims, scope: 'other.admin callboard:admin' };
    expect(await verdict(await rs(admin), { ...bound, jwksUrl })).toMatchObject({ kind: 'user', scopes: new Set() });
    expect(await verdict(await rs(admin), { ...bound, jwksUrl, scopePrefix: 'callboard:' })).toMatchObject({
      kind: 'admin',
    });
  });

  it('are neither accepted nor refused while the keys cannot be read', async () => {
    const broken = jwksUrl.replace('/keys', '/broken');
    expect(await verdict(await rs(claims), { ...bound, jwksUrl: broken })).toBe('503 store_unavailable');
  });
});

describe('replaced credentials', () => {
  it('accept tokens of the secret and of the one before it', async () => {
    const both = { secret: OTHER, previousSecret: SECRET };
    expect(await verdict(await hs(good), both)).toMatchObject({ userId: 'alice' });
    expect(await verdict(await hs(good, OTHER), both)).toMatchObject({ userId: 'alice' });
    expect(await faultOf(await hs(good, 'a third secret that no relay has, at all'), both)).toBe('signature');
    expect(await faultOf(await hs({ ...good, exp: seconds - 60 }), both)).toBe('expired');
  });

  it('apply from the next token on, also to tokens that were accepted a moment ago', async () => {
    const replaced = authenticator();
    const token = await hs(good);
    const of = (text: string) =>
      replaced.authenticate(text).then(
        () => 'accepted',
        (error: unknown) => (error instanceof CallboardError ? error.code : error),
      );
    expect([await of(token), await of(TOKENS[0] ?? '')]).toEqual(['accepted', 'accepted']);
    replaced.replace({ adminTokens: ['a-new-admin-token'], secret: OTHER });
    expect([await of(token), await of(TOKENS[0] ?? '')]).toEqual(['unauthenticated', 'unauthenticated']);
    expect([await of(await hs(good, OTHER)), await of('a-new-admin-token')]).toEqual(['accepted', 'accepted']);
  });

  it('do not cache a token whose verification began before they were replaced', async () => {
    const replaced = authenticator();
    const token = await hs(good);
    const begun = replaced.authenticate(token);
    replaced.replace({ adminTokens: [], secret: OTHER });
    await begun;
    expect(await replaced.recall(token)).toBeNull();
  });
});

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function swapHeader(token: string, header: object): string {
  return [encode(header), ...token.split('.').slice(1)].join('.');
}

function swapPayload(token: string, payload: object): string {
  const [header, , signature] = token.split('.');
  return [header, encode(payload), signature].join('.');
}

/** Signs claims that SignJWT would not accept. */
async function raw(claims: object): Promise<string> {
  const { createHmac } = await import('node:crypto');
  const body = `${encode({ alg: 'HS256' })}.${encode(claims)}`;
  return `${body}.${createHmac('sha256', SECRET).update(body).digest('base64url')}`;
}
