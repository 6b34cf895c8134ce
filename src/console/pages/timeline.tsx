/** Shows the timeline of a call. A solid line connects what is proven, and a hatched band covers what is not. */
import { duration } from '../ui/amounts.ts';
import { Section } from '../ui/page.tsx';
import { Shape } from '../ui/shapes.tsx';
import { bothTimes, day, exactClock, zoneName } from '../ui/zones.ts';
import { timelineOf, type CallDetails, type TimelineEntry } from './timeline-entries.ts';

export function CallTimeline({ call }: { readonly call: CallDetails }) {
  const { delivery } = call;
  if (!delivery) return null;
  return (
    <Section
      title="What is proven"
      about={`${day(delivery.admittedAt)}, ${zoneName()}; all times are of the store’s clock`}
    >
      <ol class="tl">
        {timelineOf(call).map((entry) => (
          <Entry key={`${entry.title} ${entry.at}`} entry={entry} start={delivery.admittedAt} />
        ))}
      </ol>
    </Section>
  );
}

function Entry({ entry, start }: { readonly entry: TimelineEntry; readonly start: string }) {
  const { at, title, text, source, shape, classes } = entry;
  const delta = at === null ? 0 : Date.parse(at) - Date.parse(start);
  return (
    <li class={classes.join(' ') || undefined}>
      <div class="tl-time">
        {at === null ? (
          <span class="sr">no time</span>
        ) : (
          <time dateTime={at} title={bothTimes(at)}>
            {exactClock(at)}
          </time>
        )}
        {delta > 0 && <span>+{duration(delta)}</span>}
      </div>
      <div class="tl-node">
        <Shape name={shape} />
      </div>
      <div class="tl-body">
        <h3>{title}</h3>
        {text !== '' && <p>{text}</p>}
        <p class="src">{source}</p>
      </div>
    </li>
  );
}
