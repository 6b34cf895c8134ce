/** Tests tickets that sign an operator in to a page. */
import { decodeJwt } from 'jose';
import { expect, it } from 'vitest';
import { createMemoryTickets } from '../../src/backends/memory/tickets.ts';
import { OPERATOR_TOKEN_SECONDS, SIGN_IN_TICKET_SECONDS } from '../../src/core/limits.ts';
import { createTicketDesk, signTicket } from '../../src/http/sign-in-tickets.ts';
import { signToken } from '../../src/http/tokens.ts';
import { FakeClock } from '../kit/clock.ts';
import { SECRET, startHttpRelay, type Ask } from './kit/http-relay.ts';

const redeem = (code: string, headers: Record<string, string> = {}): Ask => ({
  method: 'POST',
  token: null,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ code }),
});

it('a ticket signs an operator in by name, once, also through a proxy', async () => {
  await using relay = await startHttpRelay();
  const ticket = await signTicket({ secret: SECRET, name: 'lena', now: Date.now() });
  const { status, json } = await relay.ask('/sign-in', redeem(ticket, { 'x-forwarded-for': '192.0.2.1' }));
  expect(status).toBe(200);
  const token = String(json?.['token']);
  const { sub, scope, exp = 0, iat = 0 } = decodeJwt(token);
  expect([sub, scope, exp - iat]).toEqual(['lena', 'admin', OPERATOR_TOKEN_SECONDS]);
  expect((await relay.ask('/connections', { token })).status).toBe(200);
  expect((await relay.ask('/sign-in', redeem(ticket))).status).toBe(401);
  expect(relay.lines.join('')).not.toContain(ticket);
});

it('a ticket is no bearer token, and a bearer token is no ticket', async () => {
  await using relay = await startHttpRelay();
  const now = Date.now();
  const ticket = await signTicket({ secret: SECRET, name: 'lena', now });
  expect((await relay.ask('/connections', { token: ticket })).status).toBe(401);
  const bearer = await signToken({ secret: SECRET, user: 'lena', scopes: ['admin'], ttlSeconds: 60, now });
  expect((await relay.ask('/sign-in', redeem(bearer))).status).toBe(401);
});

it('a ticket of another secret, an old one and a changed one are refused; the previous secret still counts', async () => {
  const clock = new FakeClock(1_700_000_000_000);
  const now = (): number => clock.now();
  const desk = createTicketDesk({ secret: 's'.repeat(32) }, createMemoryTickets(clock), now);
  const sign = (secret: string) => signTicket({ secret, name: 'lena', now: now() });
  const [foreign, good, old] = await Promise.all([sign('x'.repeat(32)), sign('s'.repeat(32)), sign('s'.repeat(32))]);
  expect(await desk.redeem(foreign)).toBeNull();
  expect(await desk.redeem(`${good}x`)).toBeNull();
  desk.replace({ secret: 'n'.repeat(32), previousSecret: 's'.repeat(32) });
  expect(await desk.redeem(good)).toBeTypeOf('string');
  await clock.advance((SIGN_IN_TICKET_SECONDS + 1) * 1000);
  expect(await desk.redeem(old)).toBeNull();
});
