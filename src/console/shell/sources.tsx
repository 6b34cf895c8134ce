/** Shows which nodes of a page's answer are silent, and what else the answer lacks. */
import type { CompletenessPartFragment } from '../../generated/console.ts';
import { now } from '../api/visible.ts';
import { age, clock, plural } from '../ui/format.ts';
import { nodesHref } from '../ui/links.tsx';
import { CutNotice } from '../ui/notice.tsx';
import { Shape } from '../ui/shape.tsx';
import { silentNodes, type ShellNode } from './facts.tsx';

type SourcesProps = {
  readonly completeness: CompletenessPartFragment | undefined;
  /**
   * What the page still shows of a silent node, as the beginning of a sentence: `Callers that wait on it are shown`.
   * Absent: the sentence is about the node's links.
   */
  readonly held?: string | undefined;
};

/**
 * Shows a notice for each silent node, as soon as the frame knows of it, even if the page was read before. A further
 * notice says what else the answer lacks.
 */
export function Sources({ completeness, held }: SourcesProps) {
  const named = silentNodes.value.map(({ nodeId }) => nodeId);
  return (
    <>
      {silentNodes.value.map((node) => (
        <SilentNotice key={node.nodeId} node={node} held={held} />
      ))}
      <CutNotice completeness={completeness} named={named} />
    </>
  );
}

type SilentProps = { readonly node: ShellNode; readonly held: string | undefined };

function SilentNotice({ node: { nodeId, updatedAt, links }, held }: SilentProps) {
  return (
    <div class="notice notice-silent" role="note">
      <Shape name="recorded" />
      <p>
        <b>
          {nodeId} has been silent for {age(now.value - Date.parse(updatedAt))}.
        </b>{' '}
        {held ?? `Its ${plural(links, 'link')} ${links === 1 ? 'is' : 'are'} shown`} as last recorded, at{' '}
        <time dateTime={updatedAt}>{clock(updatedAt)}</time>.{' '}
        <a class="nw" href={nodesHref()}>
          See its state
        </a>
      </p>
    </div>
  );
}
