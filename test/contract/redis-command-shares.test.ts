/** Runs the contract of the shares of commands over Redis. */
import { commandShares } from './command-shares.ts';
import { redisBench } from './kit/redis-bench.ts';

commandShares(
  'redis',
  async (bounds) => {
    const bench = await redisBench({ partitions: 1, bounds });
    return {
      ...bench,
      async used(share) {
        while ((await bench.store.act(0, 'commands-sweep', [100])) === 1);
        return (await bench.backend.sharesInUse?.())?.get(share) ?? NaN;
      },
    };
  },
  { runs: 12 },
);
