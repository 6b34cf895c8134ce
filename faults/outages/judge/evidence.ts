/** Groups the events of the logs by command, as evidence for the judges. It judges nothing itself. */
import { keyText, type Key, type Logged } from '../log/events.ts';

type Of<E extends Logged['event']> = Extract<Logged, { event: E }>;
export type Attempt = Of<'attempt'>;
export type WaitEnd = Of<'answer'> | Of<'refused'> | Of<'broken'>;
export type Wait = { readonly attempt: Attempt; readonly ends: readonly WaitEnd[] };
export type Run = Of<'run-begin'>;
export type RecordRead = Of<'record'>;

/** Everything that the logs say about one command. */
export type Case = {
  readonly key: Key;
  readonly text: string;
  readonly waits: Wait[];
  /** Ends of waits for which no attempt was logged. */
  readonly strayEnds: WaitEnd[];
  /** The times at which the command arrived at a client that handled it. */
  readonly arrivals: Of<'arrival'>[];
  readonly runs: Run[];
  readonly runEnds: Of<'run-end'>[];
  /**
   * The records in the order of reading. `Evidence.final` returns the last one, if it was read at the end of the run.
   */
  readonly records: RecordRead[];
  readonly ends: Of<'ends'>[];
};

export type Evidence = {
  readonly events: readonly Logged[];
  readonly cases: ReadonlyMap<string, Case>;
  of<E extends Logged['event']>(event: E): readonly Of<E>[];
  /** Returns the record at the end of the run; null if the last reading did not contain one. */
  final(one: Case): RecordRead | null;
  /** Returns the admission time in the record; -Infinity if it is unknown. */
  admittedAt(one: Case): number;
  /** Returns whether a fault was active between these times, or was healed less than RECOVERY_MS before them. */
  disturbed(fromNs: number, toNs: number): boolean;
  /**
   * Returns the start of the calm period before `ns`: no fault is active in it, and none was healed less than
   * RECOVERY_MS before it. -Infinity if the run was calm from its start.
   */
  calmSince(ns: number): number;
  /** The start of the last reading; Infinity if there was none. */
  readonly readAt: number;
  /** Returns the faults of these kinds in order. `to`: the time of healing; Infinity if the fault was not healed. */
  faults(...kinds: readonly string[]): readonly FaultTime[];
};

export type FaultTime = {
  readonly kind: string;
  readonly target: string;
  readonly from: number;
  readonly to: number;
  /** The start of the fault by the wall clock, in epoch milliseconds; NaN if it was not recorded. */
  readonly wall: number;
};

/** One millisecond in nanoseconds, the unit of the logs. */
export const MS = 1e6;
/** How long the effects of a fault may last after it is healed, in milliseconds. */
export const RECOVERY_MS = 15_000;

export function gather(events: readonly Logged[]): Evidence {
  const byKind = new Map<string, Logged[]>();
  for (const event of events) {
    const list = byKind.get(event.event);
    if (list) list.push(event);
    else byKind.set(event.event, [event]);
  }
  const of = <E extends Logged['event']>(event: E): readonly Of<E>[] => (byKind.get(event) ?? []) as Of<E>[];
  const readAt = of('phase').findLast(({ phase }) => phase === 'read')?.at ?? Infinity;
  const faults = faultTimes(of('fault'), of('heal'));
  const final = (one: Case): RecordRead | null => one.records.findLast(({ at }) => at >= readAt) ?? null;
  return {
    events,
    cases: gatherCases(events),
    of,
    final,
    admittedAt(one) {
      // Records have times of the wall clock, and logs have times of a monotonic clock. The log of a fault has both and
      // thus gives the difference.
      const both = faults.find(({ wall }) => !Number.isNaN(wall));
      const { admittedAt = Number.NaN } = final(one) ?? {};
      return both && !Number.isNaN(admittedAt) ? both.from + (admittedAt - both.wall) * MS : -Infinity;
    },
    disturbed: (from, to) => faults.some((fault) => fault.from <= to && fault.to + RECOVERY_MS * MS >= from),
    calmSince: (ns) =>
      Math.max(...faults.filter(({ from }) => from <= ns).map(({ to }) => to + RECOVERY_MS * MS), -Infinity),
    readAt,
    faults: (...kinds) => faults.filter(({ kind }) => kinds.includes(kind)),
  };
}

function faultTimes(faults: readonly Of<'fault'>[], heals: readonly Of<'heal'>[]): readonly FaultTime[] {
  const healed = new Map(heals.map(({ id, at }) => [id, at]));
  return faults.map(({ id, kind, target, at, wall = Number.NaN }) => {
    return { kind, target, from: at, to: healed.get(id) ?? Infinity, wall };
  });
}

function gatherCases(events: readonly Logged[]): ReadonlyMap<string, Case> {
  const cases = new Map<string, Case>();
  const ends = new Map<string, WaitEnd[]>();
  for (const event of events) {
    if (!('command' in event)) continue;
    const one = caseOf(cases, event);
    switch (event.event) {
      case 'attempt': {
        const own: WaitEnd[] = ends.get(event.wait) ?? [];
        ends.set(event.wait, own);
        one.waits.push({ attempt: event, ends: own });
        break;
      }
      case 'answer':
      case 'refused':
      case 'broken':
        (ends.get(event.wait) ?? one.strayEnds).push(event);
        break;
      case 'arrival':
        one.arrivals.push(event);
        break;
      case 'run-begin':
        one.runs.push(event);
        break;
      case 'run-end':
        one.runEnds.push(event);
        break;
      case 'record':
        one.records.push(event);
        break;
      case 'ends':
        one.ends.push(event);
        break;
      case 'live':
      case 'payload':
        break;
    }
  }
  return cases;
}

function caseOf(cases: Map<string, Case>, { user, client, command }: Key): Case {
  const key = { user, client, command };
  const text = keyText(key);
  const known = cases.get(text);
  if (known) return known;
  const one: Case = { key, text, waits: [], strayEnds: [], arrivals: [], runs: [], runEnds: [], records: [], ends: [] };
  cases.set(text, one);
  return one;
}

export function answersOf(one: Case): readonly Of<'answer'>[] {
  return [...one.waits.flatMap(({ ends }) => ends), ...one.strayEnds].filter((end) => end.event === 'answer');
}

/** Returns the answers that contain the command's final outcome. */
export function verdictsOf(one: Case): readonly Of<'answer'>[] {
  return answersOf(one).filter(({ outcome }) => outcome !== 'pending');
}

/** Returns whether every invocation was certainly refused and no answer reported an admission. */
export function wasRefused(one: Case): boolean {
  const invokes = one.waits.filter(({ attempt }) => attempt.how === 'invoke');
  return (
    invokes.length > 0 &&
    answersOf(one).length === 0 &&
    invokes.every(({ ends }) => ends.length > 0 && ends.every(({ event }) => event === 'refused'))
  );
}
