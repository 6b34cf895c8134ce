/** The retained messages that name a call. */
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
      {nodes.length === 0 ? (
        <p class="soft">None is retained.</p>
      ) : (
        <MessagesTable
          rows={nodes.map((row) => ({ ...row, userId: call.userId }))}
          caption="Retained messages of this call"
        />
      )}
      {call.outcome === 'COMPLETED' && !call.resultExpired && <ResultReveal call={call} />}
      {call.resultExpired && <p class="soft">Its result is no longer retained.</p>}
    </Section>
  );
}
