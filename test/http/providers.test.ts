/** Tests tokens of identity providers with the settings of docs/tokens.md, and the settings for claims. */
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { SignJWT, exportJWK, generateKeyPair, type CryptoKey, type JWK } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AuthConfig } from '../../src/config/auth-config.ts';
import { readConfig } from '../../src/config.ts';
import { createAuthenticator } from '../../src/http/authenticator.ts';
import { FakeClock } from '../kit/clock.ts';

const PAGE = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'tokens.md'), 'utf8');
const PROVIDERS = PAGE.matchAll(/^### (.+)$[^#]*?```ini[^\n]*\n([^`]+)```\n\n```json[^\n]*\n([^`]+)```/gm)
  .map(([, name = '', settings = '', token = '']) => [name, settings, token] as const)
  .toArray();

type Key = { readonly privateKey: CryptoKey; readonly jwk: JWK };
async function makeKey(kid?: string): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), ...(kid !== undefined && { kid }), use: 'sig' } };
}

let published: readonly JWK[] = [];
let asked = 0;
const server = createServer((_request, response) => {
  asked++;
  response.end(JSON.stringify({ keys: published }));
});
let url: string;
let key: Key;
let other: Key;
beforeAll(async () => {
  [key, other] = await Promise.all([makeKey('one'), makeKey('one')]);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterAll(() => void server.close());

let clock: FakeClock;
beforeEach(() => {
  clock = new FakeClock();
  published = [key.jwk];
  asked = 0;
});

function sign(claims: object, { privateKey }: Key = key, kid: string | null = 'one'): Promise<string> {
  const now = Math.floor(clock.now() / 1000);
  return new SignJWT({ iat: now, exp: now + 3600, ...claims })
    .setProtectedHeader({ alg: 'RS256', ...(kid !== null && { kid }) })
    .sign(privateKey);
}

const open = (auth: Partial<AuthConfig> = {}) =>
  createAuthenticator({ adminTokens: [], secret: null, issuer: null, audience: null, ...auth, jwksUrl: url, clock });

const refusal = (tokenFault: string) => ({ details: { tokenFault } });

describe('docs/tokens.md', () => {
  it('has a block for each provider', () => {
    expect(PROVIDERS.map(([name]) => name)).toEqual([
      'Auth0',
      'Microsoft Entra ID',
      'Keycloak',
      'Okta',
      'Amazon Cognito',
    ]);
  });

  it.each(PROVIDERS)('reads the token of %s, and no token for others', async (_name, settings, token) => {
    const env = Object.fromEntries(
      settings
        .trim()
        .split('\n')
        .map((line) => [`CALLBOARD_${line.slice(0, line.indexOf('='))}`, line.slice(line.indexOf('=') + 1)]),
    );
    const config = readConfig(env, []);
    expect(config.warnings).toEqual([]);
    const claims: Record<string, unknown> = JSON.parse(token);
    const authenticator = open({ ...config.auth, secret: null, adminTokens: [] });
    const principal = await authenticator.authenticate(await sign(claims));
    expect(principal).toMatchObject({ kind: 'user', scopes: new Set(['connect', 'invoke']) });
    const { client_id, aud, ...rest } = claims;
    const foreign = aud === undefined ? { client_id: 'other' } : { aud: 'other', client_id };
    await expect(authenticator.authenticate(await sign({ ...rest, ...foreign }))).rejects.toMatchObject(
      refusal('audience'),
    );
    const elsewhere = await sign({ ...claims, iss: 'https://evil.example' });
    await expect(authenticator.authenticate(elsewhere)).rejects.toMatchObject(refusal('issuer'));
  });
});

describe('claims', () => {
  const read = async (auth: Partial<AuthConfig>, claims: object) => open(auth).authenticate(await sign(claims));

  it('are found by a path, whatever dots and slashes their names have', async () => {
    const claims = {
      sub: 'alice',
      'https://app.example/roles': ['connect'],
      'https://app.example': { 'my.client': { roles: ['invoke'] } },
      realm_access: { roles: ['host'] },
    };
    const scopes = async (scopeClaim: string | string[]) => {
      const principal = await read({ scopeClaim }, claims);
      return principal?.kind === 'user' ? [...principal.scopes] : null;
    };
    expect(await scopes('https://app.example/roles')).toEqual(['connect']);
    expect(await scopes('https://app.example.my.client.roles')).toEqual(['invoke']);
    expect(await scopes(['absent', 'realm_access.roles', 'https://app.example/roles'])).toEqual(['host']);
    expect(await scopes(['realm_access', 'constructor.name', '__proto__'])).toEqual([]);
  });

  it('name the user by the first that is present, and a token without one is refused', async () => {
    expect(await read({ userClaim: ['oid', 'profile.id'] }, { profile: { id: 'bob' } })).toMatchObject({
      userId: 'bob',
    });
    await expect(read({ userClaim: ['oid'] }, { sub: 'alice' })).rejects.toMatchObject(refusal('claims'));
  });

  it('fold users only where a setting says so', async () => {
    const claims = { sub: ' Alice@Example.COM' };
    expect(await read({ foldUsers: true }, claims)).toMatchObject({ userId: 'alice@example.com' });
    await expect(read({}, claims)).rejects.toMatchObject(refusal('subject'));
    await expect(read({ foldUsers: true }, { sub: 'a/b' })).rejects.toMatchObject(refusal('subject'));
  });

  it('take client_id for a missing audience only where a setting says so, and never in place of a wrong one', async () => {
    const claims = { sub: 'alice', client_id: 'app' };
    const auth = { audience: ['other', 'app'] };
    await expect(read(auth, claims)).rejects.toMatchObject(refusal('audience'));
    expect(await read({ ...auth, audienceFromClientId: true }, claims)).toMatchObject({ userId: 'alice' });
    const wrong = { ...claims, aud: 'elsewhere' };
    await expect(read({ ...auth, audienceFromClientId: true }, wrong)).rejects.toMatchObject(refusal('audience'));
  });
});

describe('a key set', () => {
  it('with several keys that fit is tried key by key', async () => {
    published = [other.jwk, key.jwk].map(({ kid: _, ...jwk }) => jwk);
    const authenticator = open();
    expect(await authenticator.authenticate(await sign({ sub: 'alice' }, key, null))).toMatchObject({
      userId: 'alice',
    });
    const stranger = await makeKey();
    const forged = await sign({ sub: 'alice' }, stranger, null);
    await expect(authenticator.authenticate(forged)).rejects.toMatchObject(refusal('signature'));
  });

  it('that replaces a key under its name is fetched again, at most once in five seconds', async () => {
    const authenticator = open();
    await authenticator.authenticate(await sign({ sub: 'alice' }));
    published = [other.jwk];
    const next = async (n: number) => authenticator.authenticate(await sign({ sub: 'alice', n }, other));
    await expect(next(1)).rejects.toMatchObject(refusal('signature'));
    expect(asked).toBe(1);
    await clock.advance(5_000);
    expect(await next(2)).toMatchObject({ userId: 'alice' });
    expect(asked).toBe(2);
    for (let n = 3; n < 13; n++)
      await expect(authenticator.authenticate(await sign({ sub: 'alice', n }))).rejects.toMatchObject(
        refusal('signature'),
      );
    expect(asked).toBe(2);
  });
});
