/** Judges that a pause and a revocation are effective from the time of their answers. */
import type { Action, Cover, Key, Logged } from '../log/events.ts';
import { MS, type Case, type Evidence, type WaitEnd } from './evidence.ts';
import { find, type Judged } from './finding.ts';

/** A pause whose answer stated that all owners have applied it. Times are those of the logs. */
type Pause = {
  readonly name: string;
  readonly cover: Cover;
  readonly askedAt: number;
  /** The time at which the relay had passed its answer to the socket. */
  readonly from: number;
  /** The time at which somebody was about to request the end of the pause. */
  readonly to: number;
};
type Call = { readonly key: Key; readonly action: Action };

/** How long after its log entry the stop of a relay has certainly taken effect, in milliseconds. */
const STOPPED_MS = 100;
/** The minimum time for which a stopped relay keeps its lease, in milliseconds. */
const LEASE_LEFT_MS = 1_500;

/**
 * Judges each pause by the times at which relays passed commands to sockets and the pause's answer to its socket. All
 * times come from one clock. A command's time is taken before it is passed on, and the answer's time after it. So a
 * command with a later time than the answer left after the answer, in spite of all delays.
 */
export function judgePaused(evidence: Evidence): Judged {
  const { cases, of } = evidence;
  const pauses = pausesOf(evidence);
  const calls = new Map(Array.from(cases.values(), (one) => [one.key.command, callOf(one)]));
  const written = of('written').flatMap(({ at, of: relay, commands }) =>
    commands.map((command) => ({ at, relay, command })),
  );
  const isCovered = ({ cover }: Pause, command: string): boolean => {
    const call = calls.get(command);
    return call !== undefined && covers(cover, call);
  };
  const breaches = pauses.flatMap((pause) =>
    between(written, pause)
      .filter(({ command }) => isCovered(pause, command))
      .map(({ at, relay, command }) => ({
        text: `${command} by ${relay}, ${msText(at - pause.from)} after ${pause.name}`,
      })),
  );
  const requests = requestsOf(evidence);
  const during = pauses.flatMap((pause) => requestsDuring(requests, pause));
  const refused = during.filter(({ end }) => end?.event === 'refused' && end.code === 'paused');
  const answered = of('pause-answered');
  return {
    looked: Math.min(pauses.length, refused.length),
    findings: [
      ...find('written to a client after the answer of a pause that covers it', breaches),
      ...find('arrived though no relay was seen to write it', unseen(of('arrival'), written)),
      ...find(
        'admitted while it was paused',
        during.filter(({ end, isFirst }) => isFirst && end?.event === 'answer'),
      ),
      ...find(
        'refused by another code than `paused`',
        during.filter(({ end, token }) => end?.event === 'refused' && !token && !REFUSED_BEFORE.has(end.code)),
      ),
      ...find('answered while a relay was stopped that may write still', tooEarly(evidence, pauses)),
      ...find('a pause that did not end', endless(evidence)),
      ...find(
        'refused to the end though nothing was paused any more',
        Array.from(cases.values()).filter(isRefusedToTheEnd),
      ),
    ],
    says:
      `${of('pause-asked').length} pauses: ${answered.length} answered, ${answered.filter(({ partial }) => partial).length} in part, ` +
      `${answered.filter(({ silent }) => silent.length > 0).length} named silent relays; the answers took ${spread(pauses)}; ` +
      `${refused.length} calls refused as paused, ${written.length} written; ${rateOf(evidence)} calls/s`,
  };
}

/** Codes of refusals by relays that did not check for a pause, because another relay was gone. */
const REFUSED_BEFORE: ReadonlySet<string> = new Set(['paused', 'not_connected', 'draining']);

function pausesOf({ of }: Evidence): readonly Pause[] {
  const asked = new Map(of('pause-asked').map((one) => [one.name, one]));
  const left = new Map(of('pause-written').map(({ pauseId, at }) => [pauseId, at]));
  const ended = new Map(of('resume-asked').map(({ name, at }) => [name, at]));
  return of('pause-answered').flatMap(({ name, pauseId, partial, at }) => {
    const request = asked.get(name);
    if (partial || !request) return [];
    // A relay that was killed right after the answer may not have logged it.
    const from = Math.min(at, left.get(pauseId) ?? at);
    return [{ name, cover: request.cover, askedAt: request.at, from, to: ended.get(name) ?? Infinity }];
  });
}

function callOf({ key, waits }: Case): Call {
  return { key, action: waits[0]?.attempt.action ?? 'work' };
}

function covers({ user_id: user, client_id: client, action }: Cover, { key, action: called }: Call): boolean {
  const [head = '', tail] = action?.split('*') ?? [];
  const isAction =
    action === undefined || (tail === undefined ? called === action : called.startsWith(head) && called.endsWith(tail));
  return isAction && (user === undefined || user === key.user) && (client === undefined || client === key.client);
}

/** Returns the events within a pause. `sorted`: the events in order of time. */
function between<E extends { readonly at: number }>(sorted: readonly E[], { from, to }: Pause): readonly E[] {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle]?.at ?? Infinity) <= from) low = middle + 1;
    else high = middle;
  }
  const found: E[] = [];
  for (let i = low; (sorted[i]?.at ?? Infinity) < to; i++) found.push(sorted[i] as E);
  return found;
}

/** One request of a caller. `since`: when the first request for the same command began. */
type Request = {
  readonly at: number;
  readonly since: number;
  readonly call: Call;
  readonly end: WaitEnd | undefined;
  readonly token: string | undefined;
  readonly text: string;
};

/** Returns all invoking requests in order of time. */
function requestsOf({ cases }: Evidence): readonly Request[] {
  const requests = Array.from(cases.values()).flatMap((one) => {
    const call = callOf(one);
    return one.waits.flatMap(({ attempt: { at, how, token, wait }, ends: [end] }): readonly Request[] => {
      if (how !== 'invoke') return [];
      const code = end?.event === 'refused' ? ` ${end.code}` : '';
      return [{ at, since: one.waits[0]?.attempt.at ?? at, call, end, token, text: `${one.text} ${wait}${code}` }];
    });
  });
  return requests.toSorted((a, b) => a.at - b.at);
}

/** Returns the requests that a pause covers and that lie between the pause's answer and the request to end it. */
function requestsDuring(requests: readonly Request[], pause: Pause) {
  return between(requests, pause)
    .filter(({ call, end }) => (end?.at ?? Infinity) < pause.to && covers(pause.cover, call))
    .map((request) => ({ ...request, isFirst: request.since > pause.from, text: `${request.text} in ${pause.name}` }));
}

type Arrival = Extract<Logged, { event: 'arrival' }>;

function unseen(arrivals: readonly Arrival[], written: readonly { readonly at: number; readonly command: string }[]) {
  const first = new Map<string, number>();
  for (const { at, command } of written) if (!first.has(command)) first.set(command, at);
  return arrivals
    .filter(({ command, at }) => (first.get(command) ?? Infinity) > at)
    .map(({ command: text }) => ({ text }));
}

/** Returns the pauses that were requested and answered while a relay was stopped that still had its lease. */
function tooEarly({ faults }: Evidence, pauses: readonly Pause[]) {
  const stops = faults('relay-pause');
  return pauses
    .filter(({ askedAt, from }) =>
      stops.some(
        (stop) => askedAt > stop.from + STOPPED_MS * MS && from < Math.min(stop.to, stop.from + LEASE_LEFT_MS * MS),
      ),
    )
    .map(({ name: text }) => ({ text }));
}

function endless({ of }: Evidence) {
  const resumed = new Set(of('resumed').map(({ name }) => name));
  return of('pause-asked')
    .filter(({ name }) => !resumed.has(name))
    .map(({ name: text }) => ({ text }));
}

function isRefusedToTheEnd({ waits }: Case): boolean {
  const last = waits.at(-1)?.ends[0];
  const isTried = waits.some(({ attempt }) => attempt.token !== undefined);
  return !isTried && last?.event === 'refused' && last.code === 'paused';
}

function rateOf({ of, events }: Evidence): string {
  const attempts = of('attempt');
  const from = of('phase').find(({ phase }) => phase === 'load')?.at ?? events[0]?.at ?? 0;
  const last = attempts.at(-1)?.at ?? from;
  return (attempts.length / Math.max(1, (last - from) / MS / 1000)).toFixed(0);
}

function spread(pauses: readonly Pause[]): string {
  const sorted = pauses.map(({ askedAt, from }) => from - askedAt).toSorted((a, b) => a - b);
  return `${msText(sorted[Math.floor(sorted.length / 2)] ?? 0)} (median) to ${msText(sorted.at(-1) ?? 0)}`;
}

function msText(ns: number): string {
  return `${(ns / MS).toFixed(2)} ms`;
}

/** Judges that the nodes named in a revocation's answer admit nothing with the revoked token after that answer. */
export function judgeRevoked({ cases, of, final }: Evidence): Judged {
  const tries = Array.from(cases.values()).flatMap((one) =>
    one.waits.map(({ attempt, ends }) => ({ one, attempt, ends })),
  );
  const byToken = Map.groupBy(tries, ({ attempt }) => attempt.token);
  const judged = of('revoked').map(({ token, nodes, at }) => {
    const all = byToken.get(token) ?? [];
    const after = all.filter(({ attempt }) => attempt.at > at && nodes.includes(attempt.relay));
    return { before: all.filter(({ one, attempt }) => attempt.at < at && one.runs.length > 0), after };
  });
  const after = judged.flatMap((one) => one.after);
  const did = after.filter(
    ({ one, ends }) => final(one) || one.runs.length > 0 || ends.some(({ event }) => event === 'answer'),
  );
  const silent = of('revoked').filter((one) => one.silent.length > 0).length;
  return {
    looked: judged.filter((one) => one.before.length > 0 && one.after.length > 0).length,
    findings: find(
      'admitted by a node that had confirmed the revocation of its token',
      did.map(({ one, attempt }) => ({ text: `${one.text} at ${attempt.relay}` })),
    ),
    says: `${judged.length} tokens revoked, ${silent} with silent nodes; ${after.length} calls with them afterwards, ${did.length} admitted`,
  };
}
