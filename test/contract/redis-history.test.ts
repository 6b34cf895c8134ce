import { historyContract } from './history.ts';
import { redisBench } from './kit/redis-bench.ts';

historyContract(
  'Redis',
  ({ streamMessages, retentionMs, streamsPerUser } = {}) =>
    redisBench({
      ...(streamMessages !== undefined && { streamMessages }),
      ...(retentionMs !== undefined && { retentionMs }),
      ...(streamsPerUser !== undefined && { streamsPerUser }),
    }),
  // Each act is a round trip.
  { runs: 30 },
);
