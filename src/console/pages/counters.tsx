/** Shows what each node has counted since it started. */
import type { Outcome } from '../../generated/console.ts';
import { Count } from '../ui/empty.tsx';
import { clock, whole } from '../ui/format.ts';
import { Section } from '../ui/page.tsx';
import { OUTCOME_ORDER, OutcomeMark } from '../ui/status.tsx';
import type { NodeRow } from './types.ts';

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
