/** Tests the form of REST request bodies. */
import { describe, expect, test } from 'vitest';
import { RawJson, trustJson } from '../../src/core/json.ts';
import { startSmall } from './kit/small-schema.ts';

describe('bodies', () => {
  const ask = { method: 'POST', path: '/things/a' };

  test('have members that become variables, snake_case names that become fields, and unchanged JSON', async () => {
    await using relay = await startSmall();
    relay.small.answer = { __typename: 'Receipt', state: 'red' };
    const params = {
      capability_profile: { DARK_BLUE: ['dark-blue', null] },
      __proto: 1,
      snake_case: { camelCase: [] },
    };
    const body = { color: 'dark-blue', params, at: 0, capability_profile: { action_invocation: true }, times: 3 };
    expect((await relay.ask({ ...ask, body })).status).toBe(200);
    expect(relay.small.seen).toEqual([
      {
        input: {
          id: 'a',
          color: 'dark-blue',
          params: new RawJson(trustJson(JSON.stringify(params))),
          at: 0,
          capabilityProfile: { actionInvocation: true, sharing: false },
          times: 3,
        },
      },
    ]);
  });

  test.each([undefined, {}, { color: null, params: null }])('%j means defaults', async (body) => {
    await using relay = await startSmall();
    relay.small.answer = { __typename: 'Receipt', state: 'red' };
    expect((await relay.ask({ ...ask, body })).status).toBe(200);
    expect(relay.small.seen).toEqual([{ input: { id: 'a', color: 'red' } }]);
  });

  test('get every fault reported at once, by its place', async () => {
    await using relay = await startSmall();
    const body = {
      id: 'b',
      color: 'RED',
      at: '2026-01-01',
      times: 1.5,
      capability_profile: { actionInvocation: true, sharing: 'yes' },
    };
    const { body: problem, status } = await relay.ask({ ...ask, body });
    expect(status).toBe(400);
    expect(problem.errors).toEqual([
      { parameter: 'id', detail: 'unknown member' },
      { parameter: 'color', detail: 'expected one of red, dark-blue' },
      { parameter: 'at', detail: 'expected an RFC 3339 time or epoch milliseconds, not seconds' },
      { parameter: 'times', detail: 'expected an integer' },
      { parameter: 'capability_profile.actionInvocation', detail: 'unknown member' },
      { parameter: 'capability_profile.action_invocation', detail: 'required' },
      { parameter: 'capability_profile.sharing', detail: 'expected true or false' },
    ]);
  });

  test.each([[[]], ['text'], [7], [null], [true]])('%j are refused as not an object', async (body) => {
    await using relay = await startSmall();
    expect((await relay.ask({ ...ask, body })).body.errors).toEqual([
      { parameter: 'body', detail: 'expected a JSON object' },
    ]);
  });

  test('with a lone surrogate are refused', async () => {
    await using relay = await startSmall();
    const body = [{ client_id: 'a\ud800' }];
    const { body: problem } = await relay.ask({ method: 'PUT', path: '/kept', requester: 'alice', body });
    expect(problem.errors).toEqual([{ parameter: '[0].client_id', detail: 'expected 1 to 512 characters' }]);
  });

  test('cannot be combined with a query', async () => {
    await using relay = await startSmall();
    const { body } = await relay.ask({ ...ask, path: '/things/a?color=red', body: {} });
    expect(body.errors).toEqual([{ parameter: 'color', detail: 'unknown parameter' }]);
  });

  test('can be one variable: a list, or one item in place of it', async () => {
    await using relay = await startSmall();
    const put = { method: 'PUT', path: '/kept', requester: 'alice' };
    await relay.ask({
      ...put,
      body: [
        { client_id: 'a', payload: null },
        { client_id: 'b', colors: ['red'] },
      ],
    });
    await relay.ask({ ...put, body: { client_id: 'c', payload: { client_id: 1 } } });
    expect(relay.small.seen).toEqual([
      { items: [{ clientId: 'a' }, { clientId: 'b', colors: ['red'] }] },
      { items: [{ clientId: 'c', payload: new RawJson(trustJson('{"client_id":1}')) }] },
    ]);
    const bad = await relay.ask({ ...put, body: [{ client_id: 'a' }, { clientId: 'b' }, 7] });
    expect(bad.body.errors).toEqual([
      { parameter: '[1].clientId', detail: 'unknown member' },
      { parameter: '[1].client_id', detail: 'required' },
      { parameter: '[2]', detail: 'expected a JSON object' },
    ]);
    expect((await relay.ask(put)).body.errors).toEqual([{ parameter: 'items', detail: 'required' }]);
  });
});

describe('a refused item', () => {
  const post = (body: unknown) => ({ method: 'POST', path: '/judged', body });
  const items = (...whys: ({ code: string; message: string } | null)[]) => ({
    list: { items: whys.map((why, i) => ({ id: `i${i}`, why })) },
  });
  const why = { code: 'stale_instance', message: 'Another one is live.' };
  const item = { client_id: 'c' };

  test('is a problem by its code if sent alone, and a verdict in a list', async () => {
    await using relay = await startSmall();
    relay.small.answer = items(why);
    const alone = await relay.ask(post(item));
    expect([alone.status, alone.body.code, alone.body.detail]).toEqual([409, 'stale_instance', why.message]);
    expect(alone.headers['content-type']).toBe('application/problem+json');
    const listed = await relay.ask(post([item]));
    expect([listed.status, listed.body]).toEqual([200, items(why)]);
    expect(relay.small.seen).toMatchObject([{ items: [{ clientId: 'c' }] }, { items: [{ clientId: 'c' }] }]);
  });

  test('does not affect an accepted item that was sent alone', async () => {
    await using relay = await startSmall();
    relay.small.answer = items(null);
    expect(await relay.ask(post(item))).toMatchObject({ status: 200, body: items(null) });
  });

  test('with an unknown code is a failure of the relay', async () => {
    await using relay = await startSmall();
    relay.small.answer = items({ code: 'nonsense', message: 'x' });
    expect((await relay.ask(post(item))).status).toBe(500);
  });
});
