/** Tests a drain in shared mode: queued commands go to the client's next link on another node. */
import { expect, it } from 'vitest';
import { admission } from '../contract/kit/bench.ts';
import { settle } from '../kit/clock.ts';
import { admin, connect, testCore, user } from '../kit/core.ts';

const alice = user('alice');
const CALL = { userId: 'alice', clientId: 'tab', action: 'open', params: null } as const;

it('a link of a closing node receives no new command, and its client gets the queued ones on another node', async () => {
  await using test = await testCore({
    wrap: (backend) => ({ ...backend, capabilities: { ...backend.capabilities, shared: true } }),
  });
  const client = await connect(test.core, alice);
  const running = test.core.rpc.invoke(alice, { ...CALL, commandId: 'running' });
  await settle();
  await test.core.delivery.drainNode(admin, 'n1', 60_000);
  await test.clock.advance(2_000);
  // Another node admits this command.
  await test.backend.commands.admit(admission('queued', { clientId: 'tab' }));
  await test.clock.advance(2_000);
  expect([client.sent.map(({ command }) => command.commandId), client.closes]).toEqual([['running'], []]);
  await client.result(client.last);
  await test.clock.advance(1_000);
  expect(client.closes).toEqual([{ cause: 'node_drained', instanceId: null }]);
  expect(await running).toMatchObject({ command: { outcome: 'completed' } });
  const [queued] = await test.backend.commands.get([{ userId: 'alice', clientId: 'tab', commandId: 'queued' }]);
  expect(queued).toMatchObject({ dispatchedAt: null, execution: 'not_written' });
});
