/** Shows notices about nodes and live updates, and the button that pauses the updates. */
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { missedEvents, paused } from '../api/live-state.ts';
import { now } from '../api/visible.ts';
import { nodesHref } from '../base.ts';
import { age } from '../ui/amounts.ts';
import { Icon } from '../ui/icons.tsx';
import { useKeys } from '../ui/keys.ts';
import { CutNotice, Notice } from '../ui/notices.tsx';
import { Shape } from '../ui/shapes.tsx';
import { plural } from '../ui/text-format.ts';
import { clock } from '../ui/zones.ts';
import { silentNodes, drainingNodes, workingNodes, isAdmin, isPagePolled } from './facts.tsx';

type SourcesProps = {
  readonly completeness: gql.CompletenessPartFragment | undefined;
  /** What the page still shows of a silent node, as the beginning of a sentence. Default: the node’s links. */
  readonly held?: string | undefined;
};

/**
 * Shows a notice about draining nodes, a notice for each silent node, and a notice about what else the answer lacks.
 * The notices about nodes follow the latest state of the nodes, even if the page was read earlier.
 */
export function Sources({ completeness, held }: SourcesProps) {
  const named = silentNodes.value.map(({ nodeId }) => nodeId);
  return (
    <>
      <DrainNotice />
      {silentNodes.value.map((node) => (
        <SilentNotice key={node.nodeId} node={node}>
          {held ?? `Its ${plural(node.links, 'link')} ${node.links === 1 ? 'is' : 'are'} shown`} as last recorded, at{' '}
          <time dateTime={node.updatedAt}>{clock(node.updatedAt)}</time>.{' '}
          <a class="nw" href={nodesHref()}>
            See its state
          </a>
        </SilentNotice>
      ))}
      <CutNotice completeness={completeness} named={named} />
    </>
  );
}

/** States which nodes drain, and which other nodes take new work. Shows nothing if no node drains. */
export function DrainNotice() {
  const names = drainingNodes.value.map(({ nodeId }) => nodeId);
  if (names.length === 0) return null;
  return (
    <Notice mark={<Shape name="drain" />}>
      <b>
        {names.length === 1
          ? `${names[0]} drains: it admits no calls`
          : `${names.join(', ')} drain: they admit no calls`}
        .
      </b>{' '}
      {workingNodes.value.length === 0
        ? 'No other node takes work: clients and callers are turned away until a new process starts.'
        : `${workingNodes.value.join(', ')} ${workingNodes.value.length === 1 ? 'takes' : 'take'} new work.`}
    </Notice>
  );
}

/** Shows the id of a node, as a link if the viewer may see nodes. */
export function NodeLink({ nodeId }: { readonly nodeId: string }) {
  return isAdmin.value ? <a href={nodesHref()}>{nodeId}</a> : <>{nodeId}</>;
}

/** States that a node is silent. The children state what that means for the page. */
export function SilentNotice({ node: { nodeId, updatedAt }, children }: SilentProps) {
  return (
    <Notice mark={<Shape name="recorded" />} look="silent">
      <b>
        {nodeId} has been silent for {age(now.value - Date.parse(updatedAt))}.
      </b>{' '}
      {children}
    </Notice>
  );
}

type SilentProps = {
  readonly node: Pick<gql.NodeRowFragment, 'nodeId' | 'updatedAt'>;
  readonly children: ComponentChildren;
};

/** States that events were missed. That live updates have stopped is shown by the frame. */
export function LiveNotice() {
  if (missedEvents.value === 0) return null;
  return (
    <Notice mark="info" role="status">
      Changes come faster than this page shows them one by one, so it is read again every few seconds.
    </Notice>
  );
}

/**
 * Shows the button that pauses live updates. `isPolled`: whether the page is kept current by repeated requests, without
 * a stream.
 */
export function PauseButton({ isPolled = false }: { readonly isPolled?: boolean }) {
  useEffect(() => {
    if (!isPolled) return undefined;
    isPagePolled.value = true;
    return () => void (isPagePolled.value = false);
  }, [isPolled]);
  const toggle = (): void => void (paused.value = !paused.value);
  useKeys({ '.': toggle });
  return (
    <button class="btn pause" type="button" onClick={toggle} aria-keyshortcuts=".">
      <Icon name={paused.value ? 'play' : 'pause'} />
      <span>{paused.value ? 'Go on live' : 'Pause live'}</span>
    </button>
  );
}
