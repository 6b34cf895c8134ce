/** Tests that every span that begins also ends, and only once, however its command ends. */
import { expect, it } from 'vitest';
import { compilePolicy } from '../../src/core/auth/policy-file.ts';
import { readTraceparent } from '../../src/core/trace-context.ts';
import type { Span, Tracing } from '../../src/core/ports.ts';
import { settle } from '../kit/clock.ts';
import { admin } from '../kit/core.ts';
import { IS_DIRECT, numRuns } from '../kit/store.ts';
import { openCore } from '../kit/topology-core.ts';
import { seeded } from './kit/random-calls.ts';

const RUNS = numRuns(60);
const STEPS = 40;
/** A time longer than any budget of a call, in milliseconds. */
const ALL_OVER_MS = 60_000;

/**
 * The ends that the spans of all runs must show at least once, even in few runs. Otherwise the runs prove too little.
 */
const IN_FEW_RUNS = ['server completed', 'server not_connected', 'client completed', 'client link_closed'];
const IN_MANY_RUNS = [
  ...['server pending', 'server expired', 'server outcome_unknown', 'server cancelled', 'server policy_denied'],
  ...['server command_conflict', 'server draining', 'client outcome_unknown', 'internal outcome_unknown'],
];
/** The ends that the runs of this topology must show. Over Redis there are a tenth of the runs. */
const ENDS = IS_DIRECT ? [...IN_FEW_RUNS, ...IN_MANY_RUNS] : IN_FEW_RUNS;

it(`ends in ${RUNS} runs of random calls, refusals, replacements, lost links and drains`, async () => {
  const ends = new Set<string>();
  for (let seed = 1; seed <= RUNS; seed++) for (const end of await endsOf(seed)) ends.add(end);
  expect([...ends]).toEqual(expect.arrayContaining(ENDS));
});

/** Runs random acts until everything is over, and checks the spans. Returns how they ended. */
async function endsOf(seed: number): Promise<ReadonlySet<string>> {
  const random = seeded(seed);
  const spans = new CountedSpans();
  const policy = compilePolicy({
    rules: [{ name: 'no-close', effect: 'deny', actions: ['forbidden'], clientTypes: ['browser'] }],
    scopes: [],
    userCapacity: null,
  });
  await using relay = await openCore({ policy, tracing: spans });
  const world = random.world(relay);
  for (let step = 0; step < STEPS; step++) {
    await world.act();
    const { requester, request } = world.call();
    const key = { userId: request.userId, clientId: request.clientId, commandId: request.commandId ?? 'c1' };
    if (random.next() < 0.2) await relay.core.rpc.cancel(admin, key, null).catch(() => {});
    if (random.next() < 0.2) relay.core.rpc.await(requester, { ...key, withinMs: 5_000 }).catch(() => {});
    await settle();
  }
  if (random.next() < 0.5) await relay.core.close();
  await world.leave();
  await relay.clock.advance(ALL_OVER_MS);
  await settle();
  expect(spans.begun, `seed ${seed}`).toBeGreaterThan(0);
  expect({ open: [...spans.open], twice: spans.endedTwice }, `seed ${seed}`).toEqual({ open: [], twice: [] });
  return spans.ends;
}

/** Records every span, and how it ended. */
class CountedSpans implements Tracing {
  readonly namesUsers = false;
  readonly open = new Set<string>();
  readonly endedTwice: string[] = [];
  readonly ends = new Set<string>();
  begun = 0;

  start(...[kind, name]: Parameters<Tracing['start']>): Span {
    const id = (++this.begun).toString(16).padStart(16, '0');
    const called = `${kind} ${name} ${id}`;
    this.open.add(called);
    return {
      recorded: true,
      declined: false,
      context: readTraceparent(`00-${id}${id}-${id}-01`, null),
      event() {},
      link() {},
      end: ({ attributes }) => {
        if (!this.open.delete(called)) this.endedTwice.push(called);
        this.ends.add(`${kind} ${String(attributes['rpc.status_code'] ?? attributes['error.type'])}`);
      },
    };
  }
}
