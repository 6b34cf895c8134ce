/** Shows the progress that the client has reported since the page was opened. */
import { Section } from '../ui/page.tsx';

export function CallProgress({ reports }: { readonly reports: readonly unknown[] }) {
  if (reports.length === 0) return null;
  return (
    <Section title="Progress" about="as the client reported it since this page was opened, newest last">
      <pre class="pre pre-wrap" tabIndex={0}>
        {reports.map((report) => JSON.stringify(report)).join('\n')}
      </pre>
    </Section>
  );
}
