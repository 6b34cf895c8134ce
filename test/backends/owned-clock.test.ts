/** Tests that relays that own partitions keep the time of the deployment, whatever the clocks of their machines show. */
import { expect, it } from 'vitest';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import { SHARE_BOUNDS } from '../../src/core/shares/share-bounds.ts';
import { ALICE, BOUND, admission, ending, keyFor } from '../contract/kit/bench.ts';
import { ownedPairBench } from '../contract/kit/owned-pair-bench.ts';

/** The clock of the deployment stands here, and that of the machine does not. */
it('a new owner goes on at the time of the deployment, and forgets nothing', async () => {
  const { bench, restart } = await ownedPairBench({ nodes: ['n1', 'n2'], memory: {}, bounds: SHARE_BOUNDS });
  const { commands } = bench.backend;
  await commands.rebind(ALICE, BOUND, 'up');
  for (const id of ['ended', 'live']) await commands.admit(admission(id));
  await commands.dispatch(keyFor('ended'), BOUND);
  await commands.finish(keyFor('ended'), ending());
  await restart('n1');
  const { inspector, history } = bench.backend;
  const { rows } = await inspector.list(ANY_COMMAND, { first: 10, after: null });
  expect(rows.map(({ row }) => [row.commandId, row.stage, row.admittedAt])).toEqual([
    ['ended', 'terminal', bench.now()],
    ['live', 'admitted', bench.now()],
  ]);
  expect(await inspector.summary()).toMatchObject({ trackedCommands: 2, dueCommands: 0 });
  expect((await history.users({ first: 10, after: null })).rows).toHaveLength(1);
  await bench.close();
});
