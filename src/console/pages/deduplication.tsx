/** Shows what the relay received more than once, as a part of the page of nodes. */
import { DedupDocument, type DedupQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { useUrlState } from '../ui/url-state.ts';
import { ErrorNotice, Information, Loading } from '../ui/notices.tsx';
import { Facts, Readouts, Section, Views } from '../ui/page.tsx';
import { age, percent, whole } from '../ui/amounts.ts';

const WINDOWS = [60, 300, 900, 3600];
const WINDOW = 300;

/** Shows what the relay received more than once. */
export function Deduplication() {
  const { values, hrefWith } = useUrlState();
  const windowSeconds = WINDOWS.find((seconds) => String(seconds) === values['window']) ?? WINDOW;
  const query = useQuery(DedupDocument, { windowSeconds });
  const dedup = query.data?.dedup;
  return (
    <Section
      title="Deduplication"
      about="messages that were received more than once; this says nothing of what clients executed"
    >
      <Views
        label="Window"
        views={WINDOWS.map((seconds) => ({
          name: seconds === 3600 ? 'Last hour' : `Last ${seconds / 60} min`,
          href: hrefWith({ window: seconds === WINDOW ? null : String(seconds) }),
          isCurrent: seconds === windowSeconds,
        }))}
      />
      <ErrorNotice query={query} what="deduplication" />
      {!dedup && query.loading && <Loading what="deduplication" />}
      {dedup && <DedupDetails {...dedup} />}
    </Section>
  );
}

function DedupDetails({ stats, backend }: DedupQuery['dedup']) {
  const { seen, unique, duplicates, liveKeys } = stats;
  return (
    <>
      {!stats.exact && (
        <Information>
          <b>These figures are estimates.</b> This store counts the keys that it still holds, and older ones are gone.
        </Information>
      )}
      <Readouts
        figures={[
          { name: 'Received', value: whole(seen), about: 'messages in this window' },
          { name: 'New', value: whole(unique), about: 'seen for the first time' },
          {
            name: 'Repeated',
            value: whole(duplicates),
            about: seen === 0 ? 'none received' : percent(duplicates / seen),
          },
          liveKeys === null
            ? { name: 'Remembered now', value: '–', about: 'not known cheaply' }
            : { name: 'Remembered now', value: whole(liveKeys), about: 'message ids' },
        ]}
      />
      <Facts
        rows={[
          ['Implementation', backend.implementation],
          ['Remembers for', age(backend.ttlSeconds * 1000)],
          backend.namespace === null ? null : ['Namespace', backend.namespace],
          ['Counts in steps of', age(stats.grainSeconds * 1000)],
        ]}
      />
    </>
  );
}
