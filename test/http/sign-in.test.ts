/** Tests the codes that sign the editor's page in. */
import { expect, it } from 'vitest';
import { SIGN_IN_MS } from '../../src/core/limits.ts';
import { createSignIn } from '../../src/http/sign-in.ts';
import { FakeClock } from '../kit/clock.ts';
import { ADMIN, startHttpRelay, type Ask } from './kit/http-relay.ts';

const redeem = (code: unknown, headers: Record<string, string> = {}): Ask => ({
  method: 'POST',
  token: null,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ code }),
});

it('a code gives the token once, and only the right code does', async () => {
  const signIn = createSignIn(ADMIN);
  await using relay = await startHttpRelay({}, { signIn });
  expect((await relay.ask('/sign-in', redeem('another'))).json).toMatchObject({ code: 'unauthenticated' });
  expect((await relay.ask('/sign-in', redeem(7))).status).toBe(400);
  expect((await relay.ask('/sign-in', { method: 'POST', token: null })).status).toBe(401);
  const first = await relay.ask('/sign-in', redeem(signIn.code));
  expect([first.status, first.json, first.headers['cache-control']]).toEqual([200, { token: ADMIN }, 'no-store']);
  expect((await relay.ask('/sign-in', redeem(signIn.code))).status).toBe(401);
  expect(relay.lines.join('')).not.toContain(signIn.code);
});

it('a code is too old after SIGN_IN_MS', async () => {
  const clock = new FakeClock();
  const [young, old] = [createSignIn('t', clock), createSignIn('t', clock)];
  clock.stepWall(-3_600_000);
  await clock.advance(SIGN_IN_MS - 1);
  expect(young.redeem(young.code)).toBe('t');
  await clock.advance(1);
  expect(old.redeem(old.code)).toBeNull();
});

it('refuses pages of other origins and requests through a proxy, after which the code still works', async () => {
  const signIn = createSignIn(ADMIN);
  await using relay = await startHttpRelay({}, { signIn });
  for (const headers of [
    { origin: 'https://elsewhere.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'x-forwarded-for': '192.0.2.1' },
    { forwarded: 'for=192.0.2.1' },
  ] as const) {
    expect((await relay.ask('/sign-in', redeem(signIn.code, headers))).status).toBe(403);
  }
  expect((await relay.ask('/sign-in', { token: null })).status).toBe(405);
  expect((await relay.ask('/sign-in', redeem(signIn.code, { origin: new URL(relay.url).origin }))).status).toBe(200);
});

it('refuses every code if the relay has issued none', async () => {
  await using relay = await startHttpRelay();
  expect((await relay.ask('/sign-in', redeem('code'))).status).toBe(401);
});

it('further codes work once each', () => {
  const signIn = createSignIn('t');
  const other = signIn.issue();
  expect([signIn.redeem(other), signIn.redeem(other), signIn.redeem(signIn.code)]).toEqual(['t', null, 't']);
});
