/** Shows times: exact in UTC, or relative to now. */
import { now } from '../api/visible.ts';
import { age, clock, day, exactClock, shortDay } from './format.ts';

type At = { readonly at: string };

/** Shows a time such as `14:31:12` in UTC. The day is shown too if it is not today. The title has the exact time. */
export function Time({ at, exact = false }: At & { readonly exact?: boolean }) {
  const today = new Date(now.value).toISOString().slice(0, 10) === at.slice(0, 10);
  return (
    <time dateTime={at} title={`${day(at)}, ${exactClock(at)} UTC`}>
      {today ? '' : `${shortDay(at)}, `}
      {exact ? exactClock(at) : clock(at)}
    </time>
  );
}

/** Shows an age such as `9 s ago`, which follows the clock. The title has the exact time. */
export function Ago({ at }: At) {
  return (
    <time dateTime={at} title={`${day(at)}, ${exactClock(at)} UTC`}>
      <AgoText at={at} />
    </time>
  );
}

/** Shows an age as text. It is a component of its own, so that only this text is rendered each second. */
function AgoText({ at }: At) {
  return <>{age(now.value - Date.parse(at))} ago</>;
}

/** Shows a future time as `in 2 m 41 s`, and a past one as `41 s ago`. */
export function Until({ at }: At) {
  const left = Date.parse(at) - now.value;
  return (
    <time dateTime={at} title={`${day(at)}, ${exactClock(at)} UTC`}>
      {left > 0 ? `in ${age(left)}` : `${age(-left)} ago`}
    </time>
  );
}

/** Shows how long something has lasted since `at`, such as `1.1 s`. The caller adds words such as `so far`. */
export function Since({ at }: At) {
  return <>{age(now.value - Date.parse(at))}</>;
}
