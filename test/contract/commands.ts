/** Defines the contract tests of the port CommandStore, which keeps commands. Every backend must pass them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ALICE, type Bench, commandActs, dispatched, ending, keyFor, type MakeBench } from './kit/bench.ts';
import { admissions, dispatch, previews, rates } from './commands/admission.ts';
import { answers } from './commands/answers.ts';
import { ends, reports, settling } from './commands/ends.ts';
import { places } from './commands/places.ts';
import { rebinding } from './commands/rebinding.ts';
import { receiving } from './commands/received.ts';

/** Defines the tests that every CommandStore must pass. */
export function commandContract(name: string, make: MakeBench): void {
  describe(`commands on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
    });
    afterEach(() => bench.close());
    const { admit, bind } = commandActs(() => bench);

    admissions(() => bench);
    previews(() => bench);
    rates(() => bench);
    dispatch(() => bench);
    reports(() => bench);
    ends(() => bench);
    settling(() => bench);
    answers(() => bench);
    rebinding(() => bench);
    receiving(() => bench);
    places(() => bench);

    it('names the commands of a client that have not ended, queued, parked or dispatched', async () => {
      const live = async () => (await bench.backend.commands.live(ALICE)).map(({ commandId }) => commandId).sort();
      expect(await live()).toEqual([]);
      await admit('parked', { connectWithinMs: 5_000, namedInstanceId: 'i9' });
      await bind();
      for (const id of ['queued', 'ended']) await admit(id);
      await dispatched(bench, 'running');
      expect(await live()).toEqual(['ended', 'parked', 'queued', 'running']);
      await bench.backend.commands.settle(keyFor('ended'), { kind: 'cancel', reason: null, by: 'test' });
      await bench.backend.commands.finish(keyFor('running'), ending());
      expect(await live()).toEqual(['parked', 'queued']);
      expect(await bench.backend.commands.live({ ...ALICE, clientId: 'other' })).toEqual([]);
    });

    it('counts the live commands of each client, those that were dispatched and the others', async () => {
      const idle = { ...ALICE, clientId: 'idle' };
      const loads = () => bench.backend.commands.loads([idle, ALICE]);
      const none = { inFlight: 0, queued: 0 };
      expect(await loads()).toEqual([none, none]);
      await admit('parked', { connectWithinMs: 5_000, namedInstanceId: 'i9' });
      await bind();
      await admit('queued');
      for (const id of ['r1', 'r2', 'ended']) await dispatched(bench, id);
      await bench.backend.commands.finish(keyFor('ended'), ending());
      expect(await loads()).toEqual([none, { inFlight: 2, queued: 2 }]);
      for (const id of ['r1', 'r2']) await bench.backend.commands.finish(keyFor(id), ending());
      await bench.backend.commands.settle(keyFor('queued'), { kind: 'cancel', reason: null, by: 'test' });
      await bench.backend.commands.settle(keyFor('parked'), { kind: 'cancel', reason: null, by: 'test' });
      expect(await loads()).toEqual([none, none]);
    });
  });
}
