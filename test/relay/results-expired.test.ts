/** Tests results that are no longer retained, over every interface. */
import { describe, expect, it } from 'vitest';
import { startTestRelay } from './kit/test-relay.ts';

const PATH = '/connections/alice/tab/actions/open';
const READ = '/commands/alice/tab/c1';
const RETENTION_MS = 4_000;

describe('RETENTION_MS', () => {
  it('covers the result of a command: afterwards every interface gives its outcome without it, and reports that', async () => {
    await using at = await startTestRelay({ retentionMs: RETENTION_MS });
    const tab = await at.client({ client_id: 'tab', instance_id: 'i1' });
    const body = { command_id: 'c1', params: { n: 1 } };
    const invoked = at.post(PATH, body);
    await tab.next('command');
    tab.send({ type: 'result', command_id: 'c1' }, { secret: 'got' });
    expect((await invoked).json).toMatchObject({ outcome: 'completed', result: { secret: 'got' }, error: null });
    const caller = await at.caller('alice');
    const asks = async (): Promise<readonly unknown[]> => {
      const graphql = await at.data(
        `mutation { awaitCommand(userId: "alice", clientId: "tab", commandId: "c1", withinMs: 1000) {
           ... on Invocation { outcome result error { code } } } }`,
        { requester: 'alice' },
      );
      caller.send({ type: 'await', ref: `r${at.clock.now()}`, client_id: 'tab', command_id: 'c1' });
      const { outcome, payload, error_code } = await caller.next('outcome');
      const rest = await Promise.all([
        at.rest(READ, { requester: 'alice' }),
        at.rest(`${READ}?within_ms=1000`, { requester: 'alice' }),
        at.post(PATH, body),
      ]);
      return [
        ...rest.map(({ status, json }) => [status, json?.['outcome'], json?.['result'], codeOf(json?.['error'])]),
        [
          'graphql',
          graphql['awaitCommand'].outcome.toLowerCase(),
          graphql['awaitCommand'].result,
          codeOf(graphql['awaitCommand'].error),
        ],
        ['link', outcome, JSON.parse(payload ?? 'null'), error_code ?? null],
      ];
    };
    const ways = [200, 200, 200, 'graphql', 'link'];
    await at.clock.advance(RETENTION_MS - 1);
    expect(await asks()).toEqual(ways.map((way) => [way, 'completed', { secret: 'got' }, null]));
    await at.clock.advance(1);
    expect(await asks()).toEqual(ways.map((way) => [way, 'completed', null, 'result_expired']));
    // None of these requests ran the command again.
    expect(tab.seen('command')).toHaveLength(1);
  });
});

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
}
