/** Times: exact in UTC, or relative to now. */
import { now } from '../api/visible.ts';
import { age, clock, day, exactClock, shortDay } from './format.ts';

type At = { readonly at: string };

/** `14:31:12` in UTC, with the day before it when it is not today; the exact time as title. */
export function Time({ at, exact = false }: At & { readonly exact?: boolean }) {
  const today = new Date(now.value).toISOString().slice(0, 10) === at.slice(0, 10);
  return (
    <time dateTime={at} title={`${day(at)}, ${exactClock(at)} UTC`}>
      {today ? '' : `${shortDay(at)}, `}
      {exact ? exactClock(at) : clock(at)}
    </time>
  );
}

/** `9 s ago`, which follows the clock; the exact time as title. */
export function Ago({ at }: At) {
  return (
    <time dateTime={at} title={`${day(at)}, ${exactClock(at)} UTC`}>
      <AgoText at={at} />
    </time>
  );
}

/** A component of its own, so that only this text is rendered each second. */
function AgoText({ at }: At) {
  return <>{age(now.value - Date.parse(at))} ago</>;
}

/** `in 2 m 41 s`, or `41 s ago` once it is over. */
export function Until({ at }: At) {
  const left = Date.parse(at) - now.value;
  return (
    <time dateTime={at} title={`${day(at)}, ${exactClock(at)} UTC`}>
      {left > 0 ? `in ${age(left)}` : `${age(-left)} ago`}
    </time>
  );
}

/** How long something has lasted since `at`: `1.1 s so far` is written by the caller. */
export function Since({ at }: At) {
  return <>{age(now.value - Date.parse(at))}</>;
}
