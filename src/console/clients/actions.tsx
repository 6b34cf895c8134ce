/** Shows the actions that one client advertises, each with a button that invokes it. */
import { openInvoke } from '../invoke/open.tsx';
import { CutNotice } from '../ui/notice.tsx';
import { Section } from '../ui/page.tsx';
import { Table, type Column } from '../ui/table.tsx';
import type { ClientDetails } from './types.ts';

type Action = ClientDetails['actions']['items'][number];

export function ClientActions({ client }: { readonly client: ClientDetails }) {
  const { userId, clientId, actions } = client;
  const columns: readonly Column<Action>[] = [
    { head: 'Action', names: true, class: 'c-1', cell: ({ name }) => name },
    { head: 'What it does', class: 'why c-3 c-wide', cell: ({ summary }) => summary ?? '' },
    { head: 'Version', class: 'nw c-off', cell: ({ version }) => version ?? '' },
    {
      head: 'Invoke',
      quietHead: true,
      class: 'r c-2',
      cell: ({ name }) => (
        <button
          class="btn btn-s"
          type="button"
          aria-label={`Invoke ${name}…`}
          onClick={() => openInvoke({ userId, clientId, action: name })}
        >
          Invoke…
        </button>
      ),
    },
  ];
  return (
    <Section title="Actions" about="that the client says it can run; each call may still be refused">
      <CutNotice completeness={actions.completeness} />
      {actions.items.length === 0 ? (
        <p class="soft">The client advertises no action.</p>
      ) : (
        <Table
          caption="Actions of this client"
          columns={columns}
          rows={actions.items}
          keyOf={({ name }) => name}
          look="mid"
        />
      )}
    </Section>
  );
}
