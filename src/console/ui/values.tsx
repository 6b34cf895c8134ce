/** Shows the states of commands, connections and nodes, each with a shape, a word and a colour. */
import type { ComponentChildren } from 'preact';
import type { ConnectionStatus, Outcome, Stage } from '../../generated/console.ts';
import { Pips, Shape, type ShapeName } from './shape.tsx';

type Look = { readonly shape: ShapeName; readonly word: string };

const OUTCOMES: Readonly<Record<Outcome, Look>> = {
  COMPLETED: { shape: 'completed', word: 'Completed' },
  FAILED: { shape: 'failed', word: 'Failed' },
  CANCELLED: { shape: 'cancelled', word: 'Cancelled' },
  EXPIRED: { shape: 'expired', word: 'Expired' },
  OUTCOME_UNKNOWN: { shape: 'unknown', word: 'Outcome unknown' },
};

/** The order in which outcomes are listed: the normal end first, the ones that need a person last. */
export const OUTCOME_ORDER: readonly Outcome[] = ['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED', 'OUTCOME_UNKNOWN'];

const STAGES: Readonly<Record<Stage, { readonly bars: number; readonly word: string }>> = {
  ADMITTED: { bars: 1, word: 'Admitted' },
  QUEUED: { bars: 2, word: 'Queued' },
  DISPATCHED: { bars: 3, word: 'Dispatched' },
  ACKNOWLEDGED: { bars: 4, word: 'Acknowledged' },
  TERMINAL: { bars: 4, word: 'Ended' },
};

const CONNECTIONS: Readonly<Record<ConnectionStatus, Look>> = {
  CONNECTED: { shape: 'up', word: 'Connected' },
  STALE: { shape: 'stale', word: 'Stale' },
  DISCONNECTED: { shape: 'down', word: 'Disconnected' },
};

export const outcomeWord = (outcome: Outcome): string => OUTCOMES[outcome].word;
export const outcomeShape = (outcome: Outcome): ShapeName => OUTCOMES[outcome].shape;
export const stageWord = (stage: Stage): string => STAGES[stage].word;

type MarkProps = { readonly shape: ShapeName; readonly children: ComponentChildren };

export function StateMark({ shape, children }: MarkProps) {
  return (
    <span class={`st st-${shape}`}>
      <Shape name={shape} />
      {children}
    </span>
  );
}

export function OutcomeMark({ outcome }: { readonly outcome: Outcome }) {
  return <StateMark shape={OUTCOMES[outcome].shape}>{OUTCOMES[outcome].word}</StateMark>;
}

export function StageMark({ stage }: { readonly stage: Stage }) {
  return (
    <span class="st st-run">
      <span class="pips">
        <Pips filled={STAGES[stage].bars} />
      </span>
      {STAGES[stage].word}
    </span>
  );
}

/** Shows the state of a command: its outcome, or the last stage that is proven. */
export function CommandMark({ stage, outcome }: { readonly stage: Stage; readonly outcome: Outcome | null }) {
  return outcome === null ? <StageMark stage={stage} /> : <OutcomeMark outcome={outcome} />;
}

/**
 * Shows the status of a connection. `recorded`: the node of the connection is silent, so the status is the last
 * recorded one.
 */
export function ConnectionMark({
  status,
  recorded,
}: {
  readonly status: ConnectionStatus;
  readonly recorded: boolean;
}) {
  if (recorded) return <StateMark shape="recorded">As last recorded</StateMark>;
  return <StateMark shape={CONNECTIONS[status].shape}>{CONNECTIONS[status].word}</StateMark>;
}
