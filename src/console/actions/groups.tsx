/** Groups the advertised actions by name, and shows each group as a row. */
import { openInvoke } from '../invoke/open.tsx';
import { ClientLink } from '../ui/links.tsx';
import type { Column } from '../ui/table.tsx';
import type { AdvertisedSample } from './types.ts';

export type ActionGroup = {
  readonly name: string;
  readonly summary: string | null;
  readonly versions: readonly string[];
  /** The clients that advertise the action, in the order of the sample. */
  readonly clients: readonly AdvertisedSample[];
};

/** Returns the groups in the order of their names. */
export function groupActions(items: readonly AdvertisedSample[]): readonly ActionGroup[] {
  return [...Map.groupBy(items, ({ action }) => action.name)]
    .map(([name, clients]) => ({
      name,
      summary: clients.find(({ action }) => action.summary !== null)?.action.summary ?? null,
      versions: [...new Set(clients.map(({ action }) => action.version).filter((version) => version !== null))],
      clients,
    }))
    .sort((one, other) => one.name.localeCompare(other.name));
}

/** The number of clients that a row names. The others are only counted. */
const NAMED = 3;

export const ACTION_COLUMNS: readonly Column<ActionGroup>[] = [
  { head: 'Action', class: 'c-1', names: true, cell: ({ name }) => name },
  { head: 'What it does', class: 'why c-3 c-wide', cell: ({ summary }) => summary ?? '' },
  { head: 'Version', class: 'nw c-off', cell: ({ versions }) => versions.join(', ') },
  { head: 'Advertised by', class: 'c-5 c-wide', cell: ({ clients }) => <Clients clients={clients} /> },
  {
    head: 'Invoke',
    quietHead: true,
    class: 'r c-2',
    cell: ({ name, clients }) => (
      <button
        class="btn btn-s"
        type="button"
        aria-label={`Invoke ${name}…`}
        onClick={() => openInvoke(startOf(name, clients))}
      >
        Invoke…
      </button>
    ),
  },
];

/** Returns what the invoke drawer starts with. With a single client, that client is chosen. */
function startOf(action: string, clients: readonly AdvertisedSample[]) {
  const [only] = clients;
  return clients.length === 1 && only ? { action, userId: only.userId, clientId: only.clientId } : { action };
}

function Clients({ clients }: { readonly clients: readonly AdvertisedSample[] }) {
  const more = clients.length - NAMED;
  return (
    <>
      {clients.slice(0, NAMED).map((client, at) => (
        <span key={`${client.userId}/${client.clientId}`}>
          {at > 0 && ', '}
          <ClientLink {...client} />
        </span>
      ))}
      {more > 0 && ` and ${more} more`}
    </>
  );
}
