/** Shows the retained messages that name a call. */
import { MessagesTable } from '../history/table.tsx';
import { day } from '../ui/format.ts';
import { Section } from '../ui/page.tsx';
import { ResultReveal } from '../history/reveal.tsx';
import type { CallDetails } from './types.ts';

export function CallMessages({ call }: { readonly call: CallDetails }) {
  const { nodes, pageInfo } = call.history;
  const first = nodes[0];
  return (
    <Section
      title="Retained messages"
      about={`${nodes.length}${pageInfo.hasNextPage ? ' and more' : ''} that name this command, oldest first${first ? `, since ${day(first.at)}` : ''}`}
    >
      <MessagesTable
        rows={nodes.map((row) => ({ ...row, userId: call.userId }))}
        caption="Retained messages of this call"
      />
      {call.outcome === 'COMPLETED' && <ResultReveal call={call} isExpired={call.resultExpired} />}
    </Section>
  );
}
