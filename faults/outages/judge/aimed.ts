/**
 * Judges a run with aimed kills: what the kills hit, how many calls involved a foreign relay, and how many commands
 * ended with an unknown outcome.
 */
import { ROLES, WORKS } from '../log/events.ts';
import { type Case, type Evidence, MS, verdictsOf } from './evidence.ts';
import { find, type Finding, type Judged } from './finding.ts';
import { setsOf } from './sets.ts';

/**
 * The minimum fraction of kills that must hit a relay with a role in a call. The other kills found no call in progress.
 */
const HIT_SHARE = 0.9;
/** The minimum fraction of these kills that must hit each role. A third of all kills aims at each role. */
const ROLE_SHARE = 0.3;
/** The minimum fraction of kills that must hit an owner during its work. */
const WORK_SHARE = 0.5;
/** The number of kills from which each kind of work must have been hit. */
const ALL_WORKS_FROM = 10;
/** The minimum fraction of calls that arrive at a relay which does not own the user. */
const FOREIGN_SHARE = 0.2;
/**
 * The maximum number of commands with an unknown outcome: a fraction of all commands, or a number for each kill,
 * whichever is more. With one kill per thousand commands, both are equal.
 */
const UNKNOWN_SHARE = 0.0005;
const UNKNOWN_OF_KILL = 0.5;

/** The number of kills that hit something. `text`: a description of it. */
type Count = { readonly text: string; readonly count: number };

export function judgeAimed(evidence: Evidence): Judged {
  const kills = evidence.of('aimed');
  const attempts = evidence.of('attempt').filter(({ owner }) => typeof owner === 'string');
  const foreign = attempts.filter(({ owner, relay }) => owner !== relay).length;
  const share = attempts.length === 0 ? 0 : foreign / attempts.length;
  const roles: readonly Count[] = ROLES.map((text) => ({
    text,
    count: kills.filter(({ role }) => role === text).length,
  }));
  const hits = roles.reduce((sum, { count }) => sum + count, 0);
  const works: readonly Count[] = WORKS.map((text) => ({
    text,
    count: kills.filter(({ work }) => work === text).length,
  }));
  const atWork = works.reduce((sum, { count }) => sum + count, 0);
  const unknown = [...evidence.cases.values()].filter((one) => evidence.final(one)?.outcome === 'outcome_unknown');
  const counted = (list: readonly Count[]): string => list.map(({ text, count }) => `${text} ${count}`).join(', ');
  return {
    looked: kills.length,
    findings: [
      ...find(
        'a role that too few kills hit',
        roles.filter(({ count }) => count < Math.floor(ROLE_SHARE * hits)),
      ),
      ...insufficient(
        hits < Math.floor(HIT_SHARE * kills.length),
        'too few kills while a call was in progress',
        `${hits} of ${kills.length}`,
      ),
      ...insufficient(
        atWork < Math.floor(WORK_SHARE * kills.length),
        'too few kills of owners at work',
        `${atWork} of ${kills.length}`,
      ),
      ...find(
        'a work that no kill hit',
        works.filter(({ count }) => count === 0 && kills.length >= ALL_WORKS_FROM),
      ),
      ...insufficient(share < FOREIGN_SHARE, 'too few foreign calls', `${foreign} of ${attempts.length}`),
      ...tooMany(evidence, unknown, kills.length),
      ...find(
        'unknown though it was not being written at a kill',
        unknown.filter((one) => !wasBeingWritten(evidence, one)),
      ),
    ],
    says: `kills of ${counted(roles)}; at work ${atWork} of ${kills.length}: ${counted(works)}; ${(share * 100).toFixed(0)} % of calls foreign; ${unknown.length} unknown`,
  };
}

function insufficient(isSo: boolean, what: string, text: string): readonly Finding[] {
  return isSo ? find(what, [{ text }]) : [];
}

function tooMany(evidence: Evidence, unknown: readonly Case[], kills: number): readonly Finding[] {
  const most = Math.max(UNKNOWN_SHARE * setsOf(evidence).attempts.length, UNKNOWN_OF_KILL * kills);
  return unknown.length > most ? find('too many ended unknown', unknown) : [];
}

/**
 * Returns whether a relay was killed after the command was marked for its link and before it reached its client. Such a
 * command must not be written again.
 */
function wasBeingWritten(evidence: Evidence, one: Case): boolean {
  const from = one.waits[0]?.attempt.at ?? Infinity;
  const to = verdictsOf(one)[0]?.at ?? Infinity;
  const arrived = one.arrivals[0]?.at ?? Infinity;
  const isMarked = evidence.final(one)?.dispatched ?? false;
  return (
    isMarked &&
    evidence.faults('relay-kill').some((kill) => from <= kill.from && kill.from < Math.min(to, arrived + MS))
  );
}
