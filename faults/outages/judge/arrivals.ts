/** Judges the arrivals of commands at clients: none arrives twice, and none runs after its deadline. */
import { type Evidence, MS, verdictsOf } from './evidence.ts';
import { find, type Judged } from './finding.ts';

/** How much earlier than the client a caller may know of a deadline, in milliseconds, on a busy machine. */
const KNOWN_EARLIER_MS = 1_000;

/** Judges that no command that arrived at its client was written to a link again. */
export function judgeUnrepeated({ cases, of }: Evidence): Judged {
  const all = [...cases.values()];
  const arrived = all.filter(({ arrivals }) => arrivals.length > 0);
  return {
    looked: of('arrival').length,
    findings: find(
      'written again though it had arrived',
      all.filter(({ arrivals }) => arrivals.length > 1),
    ),
    says: `${of('arrival').length} arrivals of ${arrived.length} commands`,
  };
}

/** The time after a late hello within which it could replace a later link, in milliseconds. */
const TAKEN_MS = 1_000;

/** Judges that a hello which arrives late does not replace a later link of its client. */
export function judgeOrdered({ of }: Evidence): Judged {
  const hellos = of('late-hellos');
  const taken = of('link').filter(
    ({ up, at }) => !up && hellos.some((late) => late.at <= at && at <= late.at + TAKEN_MS * MS),
  );
  return {
    looked: hellos.length,
    findings: find(
      'a link that a late hello took away',
      taken.map(({ user, client }) => ({ text: `${user}/${client}` })),
    ),
    says: `${hellos.reduce((sum, { count }) => sum + count, 0)} late hellos`,
  };
}

/**
 * Judges that no handler began after its command's deadline: neither after the time that the handler was told, nor
 * after a caller was told that the command had ended.
 */
export function judgeTimely(evidence: Evidence): Judged {
  const begun = [...evidence.cases.values()].flatMap((one) => one.runs.map((run) => ({ ...one, run })));
  const refused = [...evidence.cases.values()].filter((one) => evidence.final(one)?.late && one.runs.length === 0);
  const least = Math.min(Infinity, ...begun.map(({ run }) => run.leftMs));
  return {
    looked: begun.length,
    findings: [
      ...find(
        'began without time',
        begun.filter(({ run }) => run.leftMs <= 0),
      ),
      ...find(
        'began though a caller had its end',
        begun.filter((one) => one.run.at > (verdictsOf(one)[0]?.at ?? Infinity) + KNOWN_EARLIER_MS * MS),
      ),
    ],
    says: `${begun.length} runs, each with ${least.toFixed(0)} ms or more; ${refused.length} never ran and were refused late`,
  };
}
