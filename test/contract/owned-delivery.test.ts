/**
 * Runs the contracts of delivery over partitions that several relays own: as a relay that owns some of them, and as one
 * that owns none.
 */
import { commandContract } from './commands.ts';
import { commandModel } from './commands-model.ts';
import { inspectorContract } from './inspector.ts';
import { newestContract } from './inspector-newest.ts';
import { ownedBench } from './kit/owned-bench.ts';
import { nodeContract } from './nodes.ts';
import { awayPauseContract, pauseContract } from './pauses.ts';
import { waiterContract } from './waiters.ts';

for (const role of ['owner', 'foreign'] as const) {
  const name = role === 'owner' ? 'partitions of three relays' : 'partitions of other relays';
  const open = () => ownedBench(role);
  commandContract(name, open);
  waiterContract(name, open);
  // Each process looks in the partitions in which it decides.
  pauseContract(name, open, { decidesAll: false });
  awayPauseContract(name, open);
  nodeContract(name, open);
  inspectorContract(name, open);
  newestContract(name, open);
  commandModel(name, open, 40);
}
