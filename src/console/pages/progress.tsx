/**
 * Shows the progress that a client reports for a running call, and the payloads of the reports after they were
 * revealed.
 */
import { useState } from 'preact/hooks';
import { CallUpdatesDocument, type Stage } from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import type { Query } from '../api/query.ts';
import { isAdmin } from '../shell/facts.tsx';
import { ReasonDialog } from '../ui/dialogs.tsx';
import { Section } from '../ui/page.tsx';
import { Icon } from '../ui/icons.tsx';
import { Ago, Time } from '../ui/times.tsx';
import { zoneName } from '../ui/zones.ts';
import { plural } from '../ui/text-format.ts';
import type { CallDetails } from './timeline-entries.ts';

type Report = { readonly at: string; readonly payload: unknown };

export type ReportedCall = {
  /** The number of progress reports that the page knows of. */
  readonly count: number;
  readonly lastAt: string | null;
  /** The reports since payloads were revealed, with their payloads, newest last. */
  readonly shown: readonly Report[];
  /** Whether payloads are revealed. */
  readonly isRevealed: boolean;
  /** Reveals payloads, by opening another subscription that reads them. */
  readonly reveal: (reason: string | null) => void;
};

type Told = Pick<ReportedCall, 'count' | 'lastAt' | 'shown'>;

const REPORTS_MAX = 50;

type Options = {
  readonly skip: boolean;
  /** The stage of the call that the page shows. */
  readonly stage: Stage | null;
  readonly query: Query<unknown>;
};

type Ids = { readonly userId: string; readonly clientId: string; readonly commandId: string };

/** Reads the page again when the stage of its call changes, and collects the progress reports. */
export function useProgress({ userId, clientId, commandId }: Ids, { skip, stage, query }: Options): ReportedCall {
  const [told, setTold] = useState<Told>({ count: 0, lastAt: null, shown: [] });
  const [revealed, setRevealed] = useState<{ readonly reason: string | null } | null>(null);
  const isRevealed = revealed !== null;
  useLive(CallUpdatesDocument, {
    variables: { userId, clientId, commandId, isRevealed, revealReason: revealed?.reason ?? null },
    skip,
    onData: ({ commandUpdates: { at, stage: reached, isProgress, progressNumber, progress = null, missed } }) => {
      if (isProgress)
        setTold(({ count, shown }) => ({
          count: Math.max(count + 1, progressNumber ?? 0),
          lastAt: at,
          shown: isRevealed ? [...shown.slice(-(REPORTS_MAX - 1)), { at, payload: progress }] : shown,
        }));
      else if (reached !== stage) query.changed();
      return missed;
    },
    onStale: query.again,
    onEnd: query.again,
  });
  return { ...told, isRevealed, reveal: (reason) => setRevealed({ reason }) };
}

type CallProgressProps = { readonly call: CallDetails; readonly progress: ReportedCall };

export function CallProgress({ call, progress }: CallProgressProps) {
  const { count, lastAt, shown, isRevealed, reveal } = progress;
  const [asking, setAsking] = useState(false);
  if (count === 0 || lastAt === null) return null;
  return (
    <Section
      title="Progress"
      about={
        <>
          {plural(count, 'report')} by {call.clientId}, the last one <Ago at={lastAt} />
        </>
      }
    >
      {shown.length > 0 && (
        <ol class="reports" tabIndex={0} aria-label={`Reports of progress, newest last, ${zoneName()}`}>
          {shown.map(({ at, payload }) => (
            <li key={`${at} ${JSON.stringify(payload)}`}>
              <Time at={at} exact /> <code>{JSON.stringify(payload)}</code>
            </li>
          ))}
        </ol>
      )}
      {isRevealed && shown.length === 0 && <p class="soft">The next report is shown here.</p>}
      {!isRevealed && call.outcome === null && (
        <button class="btn btn-s" type="button" onClick={() => (isAdmin.value ? setAsking(true) : reveal(null))}>
          <Icon name="eye" />
          {isAdmin.value ? 'Reveal the reports to come…' : 'Show the reports to come'}
        </button>
      )}
      {asking && (
        <ReasonDialog
          title={`Progress of ${call.action}`}
          hint="8 to 256 characters. The audit log has one row for all reports that this page then shows."
          bounds={{ min: 8, max: 256 }}
          confirm="Reveal"
          keep="Keep it hidden"
          danger={false}
          failed="It was not revealed."
          act={async (reason) => reveal(reason)}
          onClose={() => setAsking(false)}
        >
          <p class="soft">Reports from now on are shown on this page until it is left.</p>
        </ReasonDialog>
      )}
    </Section>
  );
}

/** Shows the latest revealed report as a bar, if it states how much of a total is done. */
export function ProgressBar({ progress }: { readonly progress: ReportedCall }) {
  const part = partOf(progress.shown.at(-1)?.payload);
  if (part === null) return null;
  const text = `${part.done} of ${part.total}`;
  return (
    <p class="progress">
      <progress value={part.done} max={part.total} aria-label={`Progress: ${text}`} /> {text}
    </p>
  );
}

const DONE = ['done', 'current', 'completed', 'progress', 'step', 'percent'];
const TOTAL = ['total', 'of', 'max', 'steps'];

/** Returns how much of which total is done according to a report; null if the report does not state it. */
export function partOf(payload: unknown): { readonly done: number; readonly total: number } | null {
  if (typeof payload !== 'object' || payload === null) return null;
  const numberAt = (names: readonly string[]): number | null => {
    const found = names.map((name): unknown => Reflect.get(payload, name)).find((value) => typeof value === 'number');
    return typeof found === 'number' ? found : null;
  };
  const done = numberAt(DONE);
  const total = numberAt(TOTAL) ?? (Reflect.has(payload, 'percent') ? 100 : null);
  return done === null || total === null || total <= 0 || done < 0 || done > total ? null : { done, total };
}
