/** Says which mutants the simulator must notice, in which simulation, and why it cannot notice the others. */
import type { StoreName, WorkloadName } from '../simulate/workloads.ts';
import { MUTANTS } from '../outages/mutants/mutants.ts';
import type { Plant } from '../outages/mutants/plant.ts';
import { GUARD_MUTANTS } from './guards.ts';

/** A mutant of any list. Those of fault runs have the mode of their relay in their names. */
type NamedMutant = Plant & { readonly name: string; readonly says: string };

/** All mutants by their names: those of guards, and those of fault runs. */
export const ALL_MUTANTS: readonly NamedMutant[] = [
  ...GUARD_MUTANTS,
  ...MUTANTS.map((mutant) => ({ ...mutant, name: `${mutant.mode} ${mutant.name}` })),
];

type Simulation = `${StoreName} ${WorkloadName}`;

/** The mutants that simulations must notice, by their store and workload. */
const NOTICED: Readonly<Partial<Record<Simulation, readonly string[]>>> = {
  'owned store': [
    ...['gate-of-turns-open', 'gate-of-the-lost', 'lost-tail-not-refilled'],
    ...['requests-not-moved', 'requests-wait-after-a-loss', 'owned lease-renewed-late', 'made-id-admitted-again'],
  ],
  'owned events': ['waiting-read-without-a-lease', 'topics-untold-to-who-forgot', 'events-before-topics-untold'],
  'owned calls': [
    ...['shared no-mark', 'shared false-proof', 'shared run-again', 'shared admit-anew', 'shared no-epoch'],
    'reports-told-by-the-link',
  ],
  'owned sites': ['session-read-for-who-came-later'],
  'owned pauses': ['pause-unasked-at-dispatch', 'followed-unrecorded'],
  'owned revocations': ['revoked-link-welcomed'],
  'directory store': [
    ...['record-after-write', 'sync-not-awaited', 'sync-ignored', 'snapshot-before-rotation', 'kill-unsynced'],
    ...['failed-sync-forgotten', 'loss-forgotten', 'loss-told-once', 'numbers-with-gaps'],
  ],
  'directory calls': [
    ...['direct leak', 'direct early-release', 'direct swapped-result', 'direct waiter-by-command'],
    ...['direct false-proof', 'direct run-again', 'stepped-clock-believed'],
  ],
  'directory revocations': ['revoked-token-recalled', 'revoked-links-stay', 'revoked-streams-stay'],
};

/** A mutant that a simulation must notice. */
export type SimulatedMutant = NamedMutant & { readonly store: StoreName; readonly acts: WorkloadName };

export const SIMULATED_MUTANTS: readonly SimulatedMutant[] = Object.entries(NOTICED).flatMap(([simulation, names]) => {
  const [store, acts] = simulation.split(' ') as [StoreName, WorkloadName];
  return names.map((name) => ({ ...mutantOf(name), store, acts }));
});

/** Why the simulator does not notice mutants. `files`: the beginnings of their files; `names`: further ones. */
type Reason = { readonly why: string; readonly files?: readonly string[]; readonly names?: readonly string[] };

const REASONS: readonly Reason[] = [
  {
    why: 'they are mistakes of the store of today’s shared mode, which is not simulated',
    files: ['backends/redis/'],
  },
  {
    why: 'they are mistakes of scripts of Redis, of which the simulator has a model; a test compares it with a real Redis',
    files: ['backends/owned/scripts.ts'],
  },
  {
    why: 'they concern clusters and replicas, which are not simulated',
    files: ['backends/owned/mail-channels.ts', 'backends/owned/replicas.ts'],
  },
  {
    why: 'they concern HTTP, GraphQL, REST, payload files, the operating system, the console or the command line, which are not simulated',
    files: [
      ...[
        'http/',
        'graphql/',
        'rest/',
        'web/',
        'console/',
        'cli/',
        'bin.ts',
        'config.ts',
        'config/',
        'backends/spill/',
      ],
      ...[
        'core/page.ts',
        'core/document-reading.ts',
        'core/silent-nodes.ts',
        'core/json.ts',
        'core/ids.ts',
        'protocol/',
        'gateway/payloads.ts',
        'gateway/gateway.ts',
      ],
    ],
    names: ['descriptors-ignored'],
  },
  {
    why: 'no program of a run is an agent, a site, a viewer or an administrator, or has a limited token',
    files: [
      ...['mcp/', 'core/audit/', 'core/sites/', 'core/auth/', 'core/contexts/', 'core/calls/equal-calls.ts'],
      ...['core/calls/owed-answers.ts', 'core/calls/repeats.ts', 'core/commands/answers.ts'],
      ...['core/connections/', 'core/commands/events.ts', 'core/commands/command-updates.ts', 'backends/owned/bus.ts'],
    ],
    names: ['reserved-id', 'reserved-ids-from-elsewhere', 'page-of-one-node', 'silent-owner-unnamed'],
  },
  {
    why: 'they lift a bound of what one user may send or hold, which hostile inputs, neighbours and tests judge',
    files: [
      ...['core/rates.ts', 'core/shares/', 'core/collections.ts', 'core/calls/preflight.ts', 'gateway/socket.ts'],
      ...['backends/memory/evidence.ts', 'backends/memory/ledger-ended.ts', 'backends/memory/ledger-entry.ts'],
    ],
    names: [
      ...['waits-uncounted', 'rate-unnamed', 'advertised-uncounted', 'leaving-unbounded', 'mark-room-unchecked'],
      ...['mark-room-unreserved', 'members-unbounded', 'rate-unchecked', 'rate-unpaid', 'large-ends-refused'],
      ...['links-never-paused', 'messages-at-once', 'deep-results-refused', 'link-sockets-uncounted'],
      ...['lists-for-nothing', 'recorded-by-anybody', 'takeover-beyond-the-budget', 'takeover-without-room'],
      ...['holdings-of-a-former-owner', 'input-unchecked', 'hello-unbounded', 'direct wide-window'],
      ...['shared wide-window', 'records-cost-nothing', 'lists-recorded-again', 'drops-apart-unrecorded'],
    ],
  },
  {
    why: 'it takes time of the machine, and no turn of a simulated relay takes any',
    names: ['owned takeover-in-one-turn'],
  },
  {
    why: 'they change what history, listings and logs show, which no judge reads',
    names: [
      ...['direct two-ends', 'shared two-ends', 'repeated-end-counted-anew', 'shared counted-again'],
      ...['lost-said-to-be-closed', 'reset-said-to-be-lost', 'silence-of-a-client-that-left', 'silence-unseen'],
    ],
  },
  {
    why: 'the same program never calls one id with other params, another context, or without asking for progress',
    names: ['context-not-compared', 'digest-of-doubles', 'progress-unasked'],
  },
  {
    why: 'every simulated client knows places, and reports no context again that has left',
    names: ['places-unknown', 'second-life', 'contexts-that-left-forgotten'],
  },
  {
    why: 'the dispatch asks again, and what waits is offered when its link comes up again',
    names: ['pause-unasked', 'pause-not-offered'],
  },
  {
    why: 'a simulated disk changes nothing that was synced',
    names: ['damage-cut', 'batches-in-any-order', 'journal-of-any-snapshot', 'kill-cuts'],
  },
  {
    why: 'the simulator should notice them, and none of the seeds that were tried has so far: at most 150 for each, and for some none was tried yet',
    names: [
      ...['permit-of-before', 'permit-renewed-early', 'pause-unasked-again', 'held-through-a-pause'],
      ...[
        'ended-pause-kept',
        'owned pause-unasked-at-dispatch',
        'owned pause-of-one-owner',
        'owned pause-unrecorded',
        'owned pause-asks-no-relay',
      ],
      'owned revocation-confirmed-unread',
      'received-ignored',
      'acknowledged-written-again',
      'age-ignored',
      'sleep-not-noticed',
      'ended-link-replaces',
      'late-progress-sent',
      'leaving-elsewhere-unasked',
      'closing-ignored',
      'cancel-before-the-welcome',
      'cancel-before-its-call',
      'ended-and-written',
      'context-unchecked',
      'context-unchecked-at-dispatch',
      'context-of-another-instance',
      'context-unchecked-by-client',
      'messages-lost-at-the-end',
      'second-end-recorded',
      'decision-replayed',
      'reserve-kept',
      'room-while-full',
      'results-in-the-reserve',
      'marked-before-those-that-wait',
      'marked-for-another-link',
      'unanswered-admission-forgotten',
      'gap-in-numbers',
      'half-a-snapshot',
      'late-calls-unfenced',
      'mail-in-any-order',
      'mail-twice',
      'lost-on-this-link',
      'unrecorded-at-the-end',
      'read-without-a-lease',
      'found-without-a-lease',
      'handover-without-its-tail',
      'mail-before-its-facts',
      'links-of-the-process-before',
      'answers-of-a-suspended-owner',
      'growth-in-a-full-redis',
      'snapshots-together',
      'tail-that-is-not-kept',
      'claim-taken-back',
      'fenced-by-itself',
      'lost-leases-are-deaths',
      'older-leases-unnoticed',
      'left-in-doubt',
      'released-in-doubt',
      'ready-while-deciding',
      'lost-fences-are-free',
      'loss-untold',
      'request-run-again',
      'requests-in-any-order',
      'reports-under-way-forgotten',
      'contexts-repeated-as-snapshot',
      'put-back-twice-at-once',
      'followed-beyond-its-owner',
      'time-of-the-machine',
      'shared no-instance-fence',
    ],
  },
  {
    why: 'the simulator should notice it, and none of 1,000 seeds has',
    names: ['snapshot-before-records'],
  },
  { why: 'they are mistakes of other judges', files: ['../faults/'] },
];

/** Why nothing is known of the others yet. */
const UNTRIED = 'they have not been tried in a simulation yet';

/** The mutants that the simulator does not notice, by the reasons. Each is in the first list that it fits. */
export const UNNOTICED: readonly { readonly why: string; readonly mutants: readonly NamedMutant[] }[] = [
  ...REASONS.map(({ why }, i) => ({
    why,
    mutants: ALL_MUTANTS.filter((mutant) => REASONS.findIndex((of) => fits(mutant, of)) === i),
  })),
  {
    why: UNTRIED,
    mutants: ALL_MUTANTS.filter((mutant) => !isSimulated(mutant) && !REASONS.some((reason) => fits(mutant, reason))),
  },
];

function fits(mutant: NamedMutant, { files = [], names = [] }: Reason): boolean {
  if (isSimulated(mutant)) return false;
  return names.includes(mutant.name) || files.some((beginning) => mutant.file.startsWith(beginning));
}

function isSimulated({ name }: NamedMutant): boolean {
  return SIMULATED_MUTANTS.some((simulated) => simulated.name === name);
}

function mutantOf(name: string): NamedMutant {
  const found = ALL_MUTANTS.find((mutant) => mutant.name === name);
  if (!found) throw new Error(`there is no mutant ${name}`);
  return found;
}
