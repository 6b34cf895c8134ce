/** Shows how many calls ended with each outcome. Each count links to the list of those calls. */
import { pagePath } from '../base.ts';
import { outcomeCounter } from '../nodes/counters.tsx';
import { percent, plural, whole } from '../ui/format.ts';
import { Section } from '../ui/page.tsx';
import { OUTCOME_ORDER, OutcomeMark } from '../ui/status.tsx';
import type { OverviewData } from './types.ts';

export function Ends({ data }: { readonly data: OverviewData }) {
  const counts = OUTCOME_ORDER.map((outcome) => ({ outcome, count: countOf(data, outcomeCounter(outcome)) }));
  const sum = counts.reduce((total, { count }) => total + count, 0);
  return (
    <Section
      title="How calls ended"
      about={`${plural(sum, 'end')} since each node started, as the relay recorded them`}
    >
      <p class="ends">
        {counts.map(({ outcome, count }) => (
          <a key={outcome} href={pagePath(`calls?outcome=${outcome.toLowerCase()}`)}>
            <OutcomeMark outcome={outcome} /> <b>{whole(count)}</b>{' '}
            <span class="share">{sum === 0 ? '' : percent(count / sum)}</span>
          </a>
        ))}
      </p>
    </Section>
  );
}

function countOf({ delivery }: OverviewData, name: string): number {
  const counters = delivery.nodes.nodes.flatMap((node) => node.counters);
  return counters.filter((counter) => counter.name === name).reduce((sum, { value }) => sum + value, 0);
}
