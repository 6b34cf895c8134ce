/** Shows the current figures of the overview. */
import { now } from '../api/visible.ts';
import { silentNodes } from '../shell/facts.tsx';
import { age, plural, whole } from '../ui/format.ts';
import { LONG_WAIT_MS } from '../waits/columns.tsx';
import type { OverviewData } from './types.ts';

export function Readouts({ data }: { readonly data: OverviewData }) {
  const { nodes, summary } = data.delivery;
  const live = nodes.nodes.filter(({ stale }) => !stale);
  const links = live.reduce((sum, node) => sum + node.links, 0);
  const recorded = silentNodes.value.reduce((sum, node) => sum + node.links, 0);
  const unfinished = live.reduce((sum, node) => sum + node.unfinishedCommands, 0);
  const [oldest] = data.pendingRpcs.nodes;
  const waited = oldest ? now.value - Date.parse(oldest.createdAt) : 0;
  const queuedMs = summary.sampledOldestQueuedAgeMs;
  return (
    <dl class="readouts">
      <div>
        <dt>Links</dt>
        <dd>{whole(links)}</dd>
        <dd class="sub">
          {recorded > 0 ? `and ${whole(recorded)} as last recorded` : `on ${plural(live.length, 'node')}`}
        </dd>
      </div>
      <div>
        <dt>Callers waiting</dt>
        <dd>{whole(data.pendingRpcCount.count)}</dd>
        <dd class="sub">for an answer</dd>
      </div>
      <div>
        <dt>Oldest waiter</dt>
        <dd class={waited > LONG_WAIT_MS ? 'over' : undefined}>{oldest ? age(waited) : '–'}</dd>
        <dd class="sub">{waited > LONG_WAIT_MS ? 'over the bound of 60 s' : 'the bound is 60 s'}</dd>
      </div>
      <div>
        <dt>Unfinished</dt>
        <dd>{whole(unfinished)}</dd>
        <dd class="sub">commands that did not end</dd>
      </div>
      <div>
        <dt>Due</dt>
        <dd class={summary.dueCommands > 0 ? 'over' : undefined}>{whole(summary.dueCommands)}</dd>
        <dd class="sub">past a deadline, not yet ended</dd>
      </div>
      <div>
        <dt>Oldest queued</dt>
        <dd>{queuedMs === null ? '–' : age(queuedMs)}</dd>
        <dd class="sub">of {plural(summary.sampleSize, 'command')} sampled</dd>
      </div>
    </dl>
  );
}
