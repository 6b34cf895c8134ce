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
    'tail-that-is-not-kept',
    'claim-taken-back',
  ],
  'owned events': [
    ...['waiting-read-without-a-lease', 'topics-untold-to-who-forgot', 'events-before-topics-untold'],
    ...['mail-in-any-order', 'mail-twice'],
  ],
  'owned calls': [
    ...['shared no-mark', 'shared false-proof', 'shared run-again', 'shared admit-anew', 'shared no-epoch'],
    'cancel-before-its-call',
    'left-socket-kept',
    'left-socket-heard',
    'never-recorded-told-as-lost',
    'age-ignored',
    'requests-in-any-order',
    'reports-told-by-the-link',
  ],
  'owned sites': ['session-read-for-who-came-later'],
  'owned pauses': [
    'pause-unasked-at-dispatch',
    'followed-unrecorded',
    'owned pause-unrecorded',
    'owned pause-of-one-owner',
    'pause-unasked-again',
    'owned pause-unasked-at-dispatch',
  ],
  'owned revocations': [
    ...['revoked-link-welcomed', 'owned revocation-confirmed-unread', 'undated-token-survives'],
    'answer-overtakes-output',
  ],
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
    why: 'another rule refuses what they let through: the dispatch asks again, and the client runs nothing for a context that it does not have',
    names: ['context-unchecked', 'context-unchecked-at-dispatch', 'context-of-another-instance'],
  },
  {
    why: 'a simulated client runs a command as soon as it arrives, so its context cannot go in between',
    names: ['context-unchecked-by-client'],
  },
  {
    why: 'a client runs nothing again that it has received, whoever writes it',
    names: ['received-ignored', 'acknowledged-written-again'],
  },
  {
    why: 'they lose no more than a link that breaks a moment earlier: a result is sent again over the next link, and a command ends as one of which nobody knows',
    names: ['messages-lost-at-the-end', 'unanswered-admission-forgotten'],
  },
  {
    why: 'they change the order in which commands of several callers begin, which no judge reads',
    names: ['marked-before-those-that-wait'],
  },
  {
    why: 'they change when a link is at its home, when a connection is tried again, or how long a client takes to leave, which no judge reads',
    names: [
      ...['home-tried-without-pause', 'homes-in-a-circle', 'moved-home-untold', 'home-of-a-draining-relay'],
      ...['home-at-itself', 'home-while-leaving', 'left-socket-closed-early', 'closing-ignored'],
    ],
  },
  {
    why: 'every home that a simulated relay names is one that its programs allow, and none has TLS',
    names: ['home-of-any-host', 'home-of-a-longer-name', 'home-without-tls'],
  },
  {
    why: 'they change which relay owns a partition, and any may; and no run has the eight clients of one partition after whom it moves',
    names: [
      ...['moves-beyond-the-share', 'stays-beyond-the-share', 'taken-beyond-the-share', 'moves-at-once'],
      ...['moves-without-pace', 'moves-back-and-forth'],
    ],
  },
  {
    why: 'the model of Redis says that it is full and has room for everything, and a full disk has its reserve: nobody judges what a log grows by meanwhile',
    names: ['growth-in-a-full-redis', 'snapshots-together', 'results-in-the-reserve', 'room-while-full'],
  },
  {
    why: 'no run keeps so much that something is dropped for lack of room',
    names: ['decision-replayed'],
  },
  {
    why: 'a simulated relay that starts again has a new name',
    names: ['links-of-the-process-before'],
  },
  {
    why: 'the next instance of a simulated client starts once the one before has closed its link, and reports nothing of that one',
    names: ['leaving-elsewhere-unasked', 'shared no-instance-fence'],
  },
  {
    why: 'judges leave out the commands of which a fault may have lost something',
    names: ['loss-untold', 'found-again-not-noted'],
  },
  {
    why: 'the relay asks once more before the welcome',
    names: ['revoked-client-connects'],
  },
  {
    why: 'no simulated user revokes the tokens of another one',
    names: ['revoked-for-others'],
  },
  {
    why: 'the command ends at its deadline instead, as one of which nobody knows',
    names: ['unwritten-untold'],
  },
  {
    why: 'fences and judges allow that a relay takes partitions from living ones after a failover',
    names: ['lost-leases-are-deaths', 'older-leases-unnoticed'],
  },
  {
    why: 'a failover takes back less than half a second, in which no partition had its first fence',
    names: ['lost-fences-are-free'],
  },
  {
    why: 'acts may be repeated: an admission finds its id, and an end its record',
    names: ['request-run-again'],
  },
  {
    why: 'no slice of a simulated relay takes any time: the second of two readers finds that its first batch is put back already, and begins anew',
    names: ['put-back-twice-at-once'],
  },
  {
    why: 'rare: a relay without a lease must answer what another one has changed in the same moment. Each was reached in some of 250 runs of acts on stores, and none of up to 40 of these noticed it',
    names: [
      ...['read-without-a-lease', 'found-without-a-lease', 'change-told-without-a-lease', 'answer-after-a-loss'],
      ...['left-in-doubt', 'released-in-doubt', 'answers-of-a-suspended-owner', 'followed-beyond-its-owner'],
      ...['ready-while-deciding'],
    ],
  },
  {
    why: 'rare: a failover must take back a claim or a handover that is a few milliseconds old, and with it what was acknowledged since. At most 2 of 250 runs of acts on stores had the first, and none the second',
    names: [
      ...['fenced-by-itself', 'given-away-too-early', 'handover-taken-for-a-loss', 'handover-without-its-tail'],
      ...['refused-handover-dropped'],
    ],
  },
  {
    why: 'rare: a snapshot must replace the batches that another relay is reading. None of 250 runs of acts on stores and 50 of calls had that',
    names: ['gap-in-numbers', 'half-a-snapshot'],
  },
  {
    why: 'rare: a client must report contexts while its partition moves, or come back to the same relay while a dispatch of its earlier link is under way. One of 50 runs of calls had the second, and none the first',
    names: ['reports-under-way-forgotten', 'contexts-repeated-as-snapshot', 'marked-for-another-link'],
  },
  {
    why: 'rare: a command must end, or be cancelled, between its dispatch and the frame, or before the welcome of its link. None of 50 runs of calls and 40 of pauses had that',
    names: ['cancel-before-the-welcome', 'ended-and-written', 'unwritten-on-another-link', 'held-through-a-pause'],
  },
  {
    why: 'rare: a client must change relays between two reports of progress of which the first one waits for the store. None of 50 runs of calls had that',
    names: ['late-progress-sent'],
  },
  {
    why: 'rare: a relay that ends must have lost a partition before a command of a waiting caller was recorded, or have an answer that is not recorded. None of 50 runs of calls had that',
    names: ['never-recorded-shown-as-pending', 'unrecorded-at-the-end'],
  },
  {
    why: 'rare: a disk must become full while the reserve is written. None of 95 runs had that',
    names: ['reserve-kept'],
  },
  {
    why: 'rare: the power must be lost after the snapshot has its name and before the next sync, within a few milliseconds, and an act of this time must concern what the snapshot had passed. None of 1,000 runs of acts on a store had that',
    names: ['snapshot-before-records'],
  },
  {
    why: 'rare: a relay must repeat a binding whose answer was lost, after a command was dispatched over it. None of 50 runs of calls and 40 of pauses had that',
    names: ['lost-on-this-link'],
  },
  {
    why: 'a simulated home refuses a link only for a while, or for a token that is renewed',
    names: ['home-ends-the-link'],
  },
  {
    why: 'rare: a snapshot must follow within the minute for which a lost link is remembered, and show the difference. None of 8 runs in which links ended twice did, and none of 2 in which they were put back in another order',
    names: ['second-end-recorded', 'lost-links-in-any-order'],
  },
  {
    why: 'rare: mail must be lost with all that would ask for it, or be asked for again in the moment before what it depends on is lost. 50 and 66 of 250 runs of acts on stores had the first half; none of 8 of each had the second',
    names: ['handover-told-once', 'mail-before-its-facts'],
  },
  {
    why: 'rare: a call that its owner gave up must run after the log was filled again. None of 8 of the 140 runs in which a log was filled again noticed it',
    names: ['late-calls-unfenced'],
  },
  {
    why: 'rare: a command must be dispatched before a pause, and its frame be held back until the pause is answered. None of 3 runs noticed it, though each asked all relays',
    names: ['permit-of-before', 'owned pause-asks-no-relay'],
  },
  {
    why: 'rare: no relay may take over a part of the store for ten seconds, in which a token is revoked that has queued calls there. No run was looked for that has it',
    names: ['silent-part-left-uncancelled'],
  },
  {
    why: 'rare: a hello must wait for its token or for the owner of its user until its client has ended and the next instance has connected. 5 of 90 runs had the end, and none of those that were tried the connection',
    names: ['ended-link-replaces', 'hello-without-time'],
  },
  {
    why: 'rare: a link must end within the milliseconds in which it opens a socket to its home. 3 of 90 runs had that, and came to one link all the same',
    names: ['home-of-a-lost-link'],
  },
  {
    why: 'rare: the clock of an owner must be wrong by more than two seconds while commands of its partition wait for their deadlines',
    names: ['time-of-the-machine'],
  },
  {
    why: 'rare: a command must arrive at a machine that falls asleep, and its time must be over by more than two seconds when that wakes up; of the 13 in 50 runs that slept so long none of those that were tried had one',
    names: ['sleep-not-noticed'],
  },
  {
    why: 'no judge reads whether calls go on once a pause has ended, before the end of the run, when whatever is still stopped is ended again',
    names: ['ended-pause-kept'],
  },
  {
    why: 'rare: a call over HTTP must wait for its client while its token is revoked, and be dispatched afterwards. None of 9 runs of revocations had that',
    names: ['revoked-queue-runs'],
  },
  { why: 'they are mistakes of other judges', files: ['../faults/'] },
];

/** The mutants that the simulator does not notice, by the reasons. Each is in the first list that it fits. */
export const UNNOTICED: readonly { readonly why: string; readonly mutants: readonly NamedMutant[] }[] = REASONS.map(
  ({ why }, i) => ({
    why,
    mutants: ALL_MUTANTS.filter((mutant) => REASONS.findIndex((of) => fits(mutant, of)) === i),
  }),
);

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
