/** Shows times: exactly in the chosen zone, or relative to now. */
import type { ComponentChildren } from 'preact';
import { now } from '../api/visible.ts';
import { age } from './amounts.ts';
import { bothTimes, clock, day, exactClock, isSameDay, shortDay } from './zones.ts';

type At = { readonly at: string };

/** Marks a text as a time. The tooltip has the exact time, in UTC and in the zone of the browser. */
function Timed({ at, children }: At & { readonly children: ComponentChildren }) {
  return (
    <time dateTime={at} title={bothTimes(at)}>
      {children}
    </time>
  );
}

/** Shows a time such as `14:31:12` in the chosen zone. The day is shown too if it is not today. */
export function Time({ at, exact = false }: At & { readonly exact?: boolean }) {
  const isToday = isSameDay(new Date(now.value).toISOString(), at);
  return (
    <Timed at={at}>
      {isToday ? '' : `${shortDay(at)}, `}
      {exact ? exactClock(at) : clock(at)}
    </Timed>
  );
}

/** Shows a time with its day and year, for times that may be years away: `21 November 2026, 14:31:12`. */
export function DayTime({ at }: At) {
  return (
    <Timed at={at}>
      {day(at)}, {clock(at)}
    </Timed>
  );
}

/** Shows the age of a time, such as `9 s ago`. It is updated each second. */
export function Ago({ at }: At) {
  return (
    <Timed at={at}>
      <AgoText at={at} />
    </Timed>
  );
}

/** Shows an age as text. It is a separate component, so that only this text is rendered again each second. */
function AgoText({ at }: At) {
  return <>{age(now.value - Date.parse(at))} ago</>;
}

/** Shows a time and its age: `14:31:12, 9 s ago`. */
export function When({ at }: At) {
  return (
    <Timed at={at}>
      {isSameDay(new Date(now.value).toISOString(), at) ? '' : `${shortDay(at)}, `}
      {clock(at)}
      <span class="quiet">
        {', '}
        <AgoText at={at} />
      </span>
    </Timed>
  );
}

/** Shows a future time as `in 2 m 41 s`, and a past one as `41 s ago`. */
export function Until({ at }: At) {
  const left = Date.parse(at) - now.value;
  return <Timed at={at}>{left > 0 ? `in ${age(left)}` : `${age(-left)} ago`}</Timed>;
}

/** Shows the time since `at`, such as `1.1 s`. The caller adds words such as `so far`. */
export function Since({ at }: At) {
  return <>{age(now.value - Date.parse(at))}</>;
}
