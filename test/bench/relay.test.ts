/** Tests that benchmarks can start a relay, ask it, and end it. */
import { expect, test } from 'vitest';
import { ADMIN_TOKEN, askJson, startRelay, userToken } from '../../bench/lib/callboard.ts';

test('the relay of the benchmarks answers its tokens, and counts its CPU time', async () => {
  await using relay = await startRelay();
  const query = '{ __typename }';
  for (const token of [ADMIN_TOKEN, await userToken('u1', 'read')])
    expect(await askJson(`${relay.url}/graphql`, { token, method: 'POST', body: { query } })).toEqual({
      data: { __typename: 'Query' },
    });
  expect(await relay.cpu()).toBeGreaterThan(0);
});
