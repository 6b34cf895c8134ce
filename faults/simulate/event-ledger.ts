/**
 * The events that hosts sent, what they were told of them, and what viewers of their sites received. Judges whether these
 * agree, and whether what must be in order was in order.
 */

/** A verdict that a host was told. `relay`: the one that told it. */
export type Verdict = {
  readonly retained: boolean;
  readonly duplicate: boolean;
  readonly published: boolean;
  readonly relay: string;
};

/** An event. Times are in milliseconds of the simulation. */
export type Sent = {
  readonly id: string;
  readonly userId: string;
  readonly suffix: string;
  readonly name: string;
  /** The number of its batch, and its place in it. */
  readonly batch: number;
  readonly place: number;
  readonly text: string;
  readonly sentAt: number;
  /** When its host was first told that it is retained; Infinity: not yet. */
  toldAt: number;
  readonly verdicts: Verdict[];
};

/** Returns what is wrong with the verdicts about an event. */
export function verdictFaults({ id, verdicts }: Sent): readonly string[] {
  const retained = verdicts.filter((one) => one.retained).length;
  const faults = verdicts.flatMap((one, i) => {
    if (one.retained === one.duplicate) return [`${id} is told as ${JSON.stringify(one)}`];
    return one.duplicate && one.published ? [`${id} is a duplicate, and published`] : one.retained && i > 0 ? [] : [];
  });
  return retained > 1 ? [...faults, `${id} was retained ${retained} times`] : faults;
}

/**
 * Returns what is wrong with the rows of a stream. `rows`: the ids in their order; `isExpected`: whether an event must be
 * there.
 */
export function streamFaults(rows: readonly string[], sent: readonly Sent[], isExpected: (one: Sent) => boolean) {
  const at = new Map(rows.map((id, i) => [id, i]));
  const known = new Set(sent.map(({ id }) => id));
  const faults = rows.filter((id) => !known.has(id)).map((id) => `${id} was never sent to this stream`);
  if (at.size < rows.length) faults.push(`a row is there twice: ${rows.join()}`);
  faults.push(
    ...sent.filter((one) => isExpected(one) && !at.has(one.id)).map(({ id }) => `${id} was told, and is lost`),
  );
  for (const one of sent)
    for (const other of sent) {
      const [first, second] = [at.get(one.id), at.get(other.id)];
      if (first === undefined || second === undefined || first < second) continue;
      if (one.batch === other.batch && one.place < other.place && one.sentAt === other.sentAt)
        faults.push(`${one.id} comes after ${other.id} of the same batch`);
      if (one.toldAt < other.sentAt) faults.push(`${one.id} comes after ${other.id}, which was sent when it was told`);
    }
  return faults;
}

/** One connection of a viewer, from when it could receive until it broke. `endedAt`: Infinity while it is open. */
export type Segment = {
  openedAt: number;
  endedAt: number;
  readonly got: { readonly id: string; readonly missed: number; readonly at: number }[];
};

type Viewed = {
  readonly viewer: string;
  readonly segments: readonly Segment[];
  /** The events that it may see. */
  readonly sent: readonly Sent[];
  /** The order of the stream. */
  readonly rows: readonly string[];
};

/** The relay that published an event; null if it is not known, or nobody was told that it is published. */
function publisherOf({ verdicts }: Sent): string | null {
  return verdicts.find(({ published }) => published)?.relay ?? null;
}

/** Returns what is wrong with what a viewer received. */
export function viewerFaults({ viewer, segments, sent, rows }: Viewed): readonly string[] {
  const faults: string[] = [];
  const byId = new Map(sent.map((one) => [one.id, one]));
  for (const { got } of segments) {
    const ids = got.map(({ id }) => id);
    for (const id of new Set(ids)) {
      if (!byId.has(id)) faults.push(`${viewer} got ${id}, which it may not see`);
      // After a gap, mail between relays that comes late may bring again what came over the connection before.
      if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`${viewer} got ${id} twice`);
    }
  }
  for (const segment of segments) faults.push(...segmentFaults(segment, byId, rows).map((one) => `${viewer} ${one}`));
  return faults;
}

function segmentFaults(
  { openedAt, endedAt, got }: Segment,
  byId: ReadonlyMap<string, Sent>,
  rows: readonly string[],
): readonly string[] {
  const faults: string[] = [];
  const places = new Map(rows.map((id, i) => [id, i]));
  // What one relay published comes in the order of the stream.
  const last = new Map<string, string>();
  for (const { id } of got) {
    const relay = publisherOf(byId.get(id) ?? NOBODY);
    if (relay === null) continue;
    const before = last.get(relay);
    if (before !== undefined && (places.get(before) ?? -1) > (places.get(id) ?? Infinity))
      faults.push(`got ${id} after ${before}, both from ${relay}`);
    last.set(relay, id);
  }
  const received = new Set(got.map(({ id }) => id));
  for (const one of byId.values()) {
    const relay = publisherOf(one);
    if (relay === null || received.has(one.id) || one.sentAt <= openedAt || one.toldAt >= endedAt) continue;
    // What was sent after it was told has come, so it is not under way any more.
    const later = got.findIndex(({ id }) => {
      const other = byId.get(id);
      return other && other.sentAt > one.toldAt && (endedAt === Infinity || publisherOf(other) === relay);
    });
    if (later < 0) continue;
    const isNamed = got.some(({ missed, at }) => missed > 0 && at >= one.sentAt);
    if (!isNamed) faults.push(`missed ${one.id} of ${relay}, and nothing told it; it got ${got[later]?.id}`);
  }
  return faults;
}

const NOBODY: Pick<Sent, 'verdicts'> & Sent = {
  ...{ id: '', userId: '', suffix: '', name: '', batch: 0, place: 0, text: '', sentAt: 0, toldAt: Infinity },
  verdicts: [],
};
