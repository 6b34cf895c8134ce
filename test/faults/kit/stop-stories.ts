/** Tells invented fault runs with pauses and revocations: those that keep what they promise, and those that break it. */
import type { Cover, FaultEvent, Key, Logged } from '../../../faults/outages/log/events.ts';
import type { PromiseName } from '../../../faults/outages/judge/promises.ts';
import { after, ANN, answer, attempt, changed, INSTANCE, later, record, storyWith } from './story.ts';

type Kept = readonly [says: string, promise: PromiseName, events: () => readonly Logged[]];
type Broken = readonly [...Kept, what: string];

const NAME = 'pause 1';
const OTHER: Key = { user: 'ann', client: 'desk', command: 'c9' };
const LOAD = { event: 'phase', phase: 'load' };
const annFirst = { event: 'attempt', wait: 'w1' };
const annAnswer = { event: 'answer', user: 'ann' };
const resumeAsked: FaultEvent = { event: 'resume-asked', name: NAME };
const resumed: FaultEvent = { event: 'resumed', name: NAME };
const left: FaultEvent = { event: 'pause-written', of: 'a', pauseId: 'p1' };
const written = (command: string): FaultEvent => ({ event: 'written', of: 'b', commands: [command] });
const arrival: FaultEvent = { event: 'arrival', ...ANN, instance: INSTANCE };
const asked = (cover: Cover): FaultEvent => ({ event: 'pause-asked', name: NAME, relay: 'a', cover });
const answered = (partial = false): FaultEvent => {
  return { event: 'pause-answered', name: NAME, pauseId: 'p1', partial, silent: [] };
};
const refused = (key: Key, wait: string, code = 'paused'): readonly FaultEvent[] => [
  attempt(key, wait),
  { event: 'refused', ...key, wait, code },
];

type Pausing = {
  readonly cover?: Cover;
  readonly partial?: boolean;
  /** What happens before the answer leaves its relay, and between that and the resume. */
  readonly before?: readonly FaultEvent[];
  readonly during?: readonly FaultEvent[];
  readonly end?: readonly FaultEvent[];
};

/** A pause, within which ann's command is refused once. It runs when the pause is over. */
function pausing({
  cover = { user_id: 'ann' },
  partial,
  before = [],
  during = [],
  end = [resumeAsked, resumed],
}: Pausing) {
  const holding = [...refused(ANN, 'w0'), ...during];
  return after(LOAD, asked(cover), ...before, left, answered(partial), ...holding, ...end);
}

const stop: FaultEvent = { event: 'fault', id: 1, kind: 'relay-pause', target: 'b' };
const heal: FaultEvent = { event: 'heal', id: 1 };

/** Ann's command was called with a token, which is revoked. `next`: what comes of a call after that. */
function revoking(nodes: readonly string[], ...next: readonly FaultEvent[]): readonly Logged[] {
  const tried: FaultEvent = { ...attempt(OTHER, 't1'), token: 'jti' } as FaultEvent;
  const revoked: FaultEvent = { event: 'revoked', token: 'jti', nodes, silent: [] };
  return storyWith(changed(annFirst, { token: 'jti' }), after(annAnswer, revoked, tried, ...next));
}

export const KEPT_STOPS: readonly Kept[] = [
  [
    'a call that is refused until the resume',
    'paused',
    () => storyWith(pausing({}), after(annFirst, written('c1'), arrival)),
  ],
  [
    'a command that left before the answer',
    'paused',
    () => storyWith(pausing({ before: [written('c1')], during: [arrival] })),
  ],
  [
    'a command of another action',
    'paused',
    () =>
      storyWith(
        pausing({ cover: { action: 'w*' }, during: [written('c9')] }),
        after(annFirst, { ...attempt(OTHER, 'w9'), action: 'rest' } as FaultEvent),
      ),
  ],
  [
    'a call with a token that is refused',
    'revoked',
    () => revoking(['a'], { event: 'refused', ...OTHER, wait: 't1', code: 'unauthenticated' }),
  ],
];

const WRITTEN = 'written to a client after the answer of a pause that covers it';
const ADMITTED = 'admitted by a node that had confirmed the revocation of its token';
export const BROKEN_STOPS: readonly Broken[] = [
  [
    'a command of its user that leaves after the answer',
    'paused',
    () => storyWith(pausing({ during: [written('c1')] })),
    WRITTEN,
  ],
  [
    'a command of its action that leaves after the answer',
    'paused',
    () => storyWith(pausing({ cover: { action: 'w*k' }, during: [written('c1')] })),
    WRITTEN,
  ],
  [
    'any command that leaves after the answer',
    'paused',
    () => storyWith(pausing({ cover: { all: true }, during: [written('c2')] })),
    WRITTEN,
  ],
  [
    'an arrival of what no relay was seen to write',
    'paused',
    () => storyWith(pausing({}), after(annFirst, arrival)),
    'arrived though no relay was seen to write it',
  ],
  [
    'a call that is admitted',
    'paused',
    () => storyWith(pausing({ during: [attempt(OTHER, 'w9'), answer(OTHER, 'w9')] })),
    'admitted while it was paused',
  ],
  [
    'a call that is refused for another reason',
    'paused',
    () => storyWith(pausing({ during: refused(ANN, 'w9', 'queue_full') })),
    'refused by another code than `paused`',
  ],
  [
    'an answer while a relay with a lease was stopped',
    'paused',
    () => storyWith(pausing({}), after(LOAD, stop), after(annAnswer, heal), later({ event: 'pause-asked' }, 300)),
    'answered while a relay was stopped that may write still',
  ],
  ['a pause without an end', 'paused', () => storyWith(pausing({ end: [resumeAsked] })), 'a pause that did not end'],
  [
    'a call that is refused to the end',
    'paused',
    () => storyWith(pausing({ during: refused(OTHER, 'w9') })),
    'refused to the end though nothing was paused any more',
  ],
  ['a call with a token that is answered', 'revoked', () => revoking(['a'], answer(OTHER, 't1')), ADMITTED],
  [
    'a call with a token that is on record',
    'revoked',
    () => [...revoking(['a']), ...storyWith(after({ event: 'idle' }, record(OTHER))).slice(-1)],
    ADMITTED,
  ],
];
