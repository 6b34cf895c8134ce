/** Shows what each node has counted since it started. */
import type { NodesQuery, Outcome } from '../../../generated/console.ts';
import { Count, Nil, Section } from '../ui/page.tsx';
import type { Column } from '../ui/table.tsx';
import { OUTCOME_ORDER, OutcomeMark } from '../ui/values.tsx';
import { clock, percent, whole } from '../ui/words.ts';

/**
 * The words for counters that are not outcomes, in the order in which they are listed. Other counters follow in the
 * order of their names.
 */
const WORDS: Readonly<Record<string, string>> = {
  commands_admitted: 'Admitted',
  commands_dispatched: 'Dispatched',
  commands_acknowledged: 'Acknowledged',
  late_results: 'Late results',
  commands_recovered: 'Requeued after a loss',
  fenced_results: 'Results of another instance, refused',
  replies_dropped: 'Replies without a waiter',
};

export function NodeCounters({ nodes }: { readonly nodes: readonly NodeRow[] }) {
  const names = namesOf(nodes);
  if (names.length === 0) return null;
  return (
    <Section title="Counted since each node started" about="outcomes are of commands whose end that node recorded">
      <div class="scroll" tabIndex={0} role="region" aria-label="Counters by node">
        <table class="tbl tbl-s tbl-fit">
          <thead>
            <tr>
              <th scope="col">Counter</th>
              {nodes.map(({ nodeId, stale, updatedAt }) => (
                <th key={nodeId} scope="col" class="r">
                  {nodeId}
                  {stale && `, at ${clock(updatedAt)}`}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <th scope="row">{nameText(name)}</th>
                {nodes.map((node) => (
                  <td key={node.nodeId} class={node.stale ? 'r quiet' : 'r'}>
                    <Figure node={node} name={name} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Figure({ node, name }: { readonly node: NodeRow; readonly name: string }) {
  const value = node.counters.find((counter) => counter.name === name)?.value ?? 0;
  return <Count value={value} text={whole(value)} />;
}

/** Returns the names of the counters: outcomes first, then the known counters, then the others. */
function namesOf(nodes: readonly NodeRow[]): readonly string[] {
  const present = new Set(nodes.flatMap(({ counters }) => counters.map(({ name }) => name)));
  const ordered = [...OUTCOME_ORDER.map((outcome) => outcomeCounter(outcome)), ...Object.keys(WORDS)];
  const others = [...present].filter((name) => !ordered.includes(name)).sort();
  return [...ordered.filter((name) => present.has(name)), ...others];
}

/** Returns the name of the counter of an outcome. */
export function outcomeCounter(outcome: Outcome): string {
  return `commands_ended:${outcome.toLowerCase()}`;
}

function nameText(name: string) {
  const outcome = OUTCOME_ORDER.find((candidate) => outcomeCounter(candidate) === name);
  if (outcome) return <OutcomeMark outcome={outcome} />;
  const text = WORDS[name] ?? name.replaceAll('_', ' ').replace(':', ': ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// Defines the columns of tables of admission scopes, on the capacity page and on the overview.

type Scope = { readonly scopeId: string; readonly reservedCommands: number; readonly limit: number | null };

/** A scope that uses at least this fraction of its limit is shown as nearly full. */
const NEARLY_FULL = 0.9;

export const SCOPE_COLUMNS: readonly Column<Scope>[] = [
  { head: 'Scope', names: true, cell: ({ scopeId }) => scopeId },
  { head: 'Share', quietHead: true, class: 'bar-col', cell: (scope) => <Bar scope={scope} /> },
  { head: 'Held', class: 'r nw', cell: (scope) => <Held scope={scope} /> },
  {
    head: 'Limit',
    class: 'r',
    cell: ({ limit }) => (limit === null ? <Nil why="no limit for this scope" /> : whole(limit)),
  },
];

/** Returns the fraction of its limit that a scope uses; 0 without a limit. */
export function shareOf({ reservedCommands, limit }: Scope): number {
  return limit === null || limit === 0 ? 0 : reservedCommands / limit;
}

function Bar({ scope }: { readonly scope: Scope }) {
  const share = Math.min(1, shareOf(scope));
  const look = share >= 1 ? 'bar-full' : share >= NEARLY_FULL ? 'bar-hi' : 'bar-fg';
  return (
    <svg class="bar" aria-hidden="true">
      <rect class="bar-bg" width="100%" height="100%" rx="2" />
      <rect class={look} width={`${(share * 100).toFixed(1)}%`} height="100%" rx="2" />
    </svg>
  );
}

function Held({ scope }: { readonly scope: Scope }) {
  const share = shareOf(scope);
  const held = whole(scope.reservedCommands);
  if (share >= 1) return <span class="at-limit">{held}, full</span>;
  return share >= NEARLY_FULL ? <span class="over">{`${held}, ${percent(share)}`}</span> : <>{held}</>;
}

// Defines the types that several files of the node pages use. Contains types only.

export type NodeRow = NodesQuery['delivery']['nodes']['nodes'][number];
