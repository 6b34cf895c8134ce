/** Shows what the relay received more than once: statistics of ingestion, not of execution. */
import { DedupDocument } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { useUrlState } from '../ui/filters.tsx';
import { AsOf, ErrorNotice, Facts, Information, Loading, PageHead, Section } from '../ui/page.tsx';
import { age, percent, whole } from '../ui/words.ts';

/** The time windows that the page offers, and the one that it begins with. Seconds. */
const WINDOWS = [60, 300, 900, 3600];
const WINDOW = 300;

export function DedupPage() {
  const { values, hrefWith } = useUrlState();
  const windowSeconds = WINDOWS.find((seconds) => String(seconds) === values['window']) ?? WINDOW;
  const query = useQuery(DedupDocument, { windowSeconds });
  const dedup = query.data?.dedup;
  return (
    <>
      <PageHead title="Deduplication" acts={<AsOf queries={[query]} />}>
        Messages that the relay received more than once. This says nothing of what clients executed.
      </PageHead>
      <nav class="views" aria-label="Window">
        {WINDOWS.map((seconds) => (
          <a
            key={seconds}
            href={hrefWith({ window: seconds === WINDOW ? null : String(seconds) })}
            aria-current={seconds === windowSeconds ? 'page' : undefined}
          >
            Last {seconds === 3600 ? 'hour' : `${seconds / 60} min`}
          </a>
        ))}
      </nav>
      <ErrorNotice query={query} what="deduplication" />
      {!dedup && query.loading && <Loading what="deduplication" />}
      {dedup && (
        <>
          {!dedup.stats.exact && (
            <Information>
              <b>These figures are estimates.</b> This store counts the keys that it still holds, and older ones are
              gone.
            </Information>
          )}
          <dl class="readouts">
            <div>
              <dt>Received</dt>
              <dd>{whole(dedup.stats.seen)}</dd>
              <dd class="sub">messages in this window</dd>
            </div>
            <div>
              <dt>New</dt>
              <dd>{whole(dedup.stats.unique)}</dd>
              <dd class="sub">seen for the first time</dd>
            </div>
            <div>
              <dt>Repeated</dt>
              <dd>{whole(dedup.stats.duplicates)}</dd>
              <dd class="sub">
                {dedup.stats.seen === 0 ? 'none received' : percent(dedup.stats.duplicates / dedup.stats.seen)}
              </dd>
            </div>
            <div>
              <dt>Remembered now</dt>
              <dd>{dedup.stats.liveKeys === null ? '–' : whole(dedup.stats.liveKeys)}</dd>
              <dd class="sub">{dedup.stats.liveKeys === null ? 'not known cheaply' : 'message ids'}</dd>
            </div>
          </dl>
          <Section title="Deduplicator">
            <Facts
              rows={[
                ['Implementation', dedup.backend.implementation],
                ['Remembers for', age(dedup.backend.ttlSeconds * 1000)],
                dedup.backend.namespace === null ? null : ['Namespace', dedup.backend.namespace],
                ['Counts by', age(dedup.stats.grainSeconds * 1000)],
              ]}
            />
          </Section>
        </>
      )}
    </>
  );
}
