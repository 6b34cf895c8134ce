/** Stores the period that a person has chosen for the plots in the URL, and shows the dialog that asks for it. */
import { useMemo, useState } from 'preact/hooks';
import { RequestError } from '../api/request.ts';
import { FormDialog, TextField } from '../ui/dialogs.tsx';
import { useUrlState } from '../ui/url-state.ts';
import { readTime, writeTime } from '../ui/time-input.ts';

/** A period. Both ends are epoch milliseconds. */
export type TimeSpan = { readonly from: number; readonly to: number };

/** How long the relay keeps series, in milliseconds. */
export const KEPT_MS = 86_400_000;
/** The length of the shortest span in milliseconds, which is six times the shortest step. */
const LEAST_MS = 30_000;

/** The span that two texts name, or a sentence about why they do not name one. */
type ReadSpan =
  { readonly span: TimeSpan; readonly fault?: undefined } | { readonly span?: undefined; readonly fault: string };

/** Reads the two ends of a span as people write them (see `readTime`). */
function readSpan(from: string, to: string, now: number): ReadSpan {
  const span = { from: readTime(from, now), to: readTime(to, now) };
  if (span.from === null || span.to === null)
    return { fault: `“${span.from === null ? from : to}” is not a time. Write 14:31, or 2026-11-21T14:31, in UTC.` };
  if (span.to <= span.from) return { fault: 'The span ends before it begins.' };
  if (span.to - span.from < LEAST_MS) return { fault: `The shortest span is ${LEAST_MS / 1000} seconds.` };
  if (span.from >= now) return { fault: 'The span lies in the future.' };
  if (span.to <= now - KEPT_MS) return { fault: 'The relay keeps series for a day, and the span is older.' };
  return { span: { from: span.from, to: span.to } };
}

type SpanState = {
  /** The chosen span. Null: none is chosen, and the plots show a window up to now. */
  readonly span: TimeSpan | null;
  /** The reason why the span in the URL is not shown; null if it is shown or there is none. */
  readonly fault: string | null;
  /** Shows this span, or the shortest allowed one around it, and adds an entry to the browser's history. */
  readonly choose: (span: TimeSpan) => void;
};

/** Returns the span that the URL's parameters `from` and `to` name. */
export function useSpan(): SpanState {
  const { values, change } = useUrlState();
  const { from, to } = values;
  // The URL is read only when it changes. Otherwise a shown span would be refused later, when it has become too old.
  const { span, fault } = useMemo(() => readEnds(from, to), [from, to]);
  const choose = (chosen: TimeSpan): void => {
    const wider = Math.max(0, LEAST_MS - (chosen.to - chosen.from)) / 2;
    const first = Math.floor((chosen.from - wider) / 1000) * 1000;
    const last = Math.ceil((chosen.to + wider) / 1000) * 1000;
    change({ from: writeTime(first), to: writeTime(last), window: null });
  };
  return { span: span ?? null, fault: fault ?? null, choose };
}

function readEnds(from: string | undefined, to: string | undefined): Partial<ReadSpan> {
  if (from === undefined && to === undefined) return {};
  if (from === undefined || to === undefined) return { fault: 'The address names only one end of a span.' };
  return readSpan(from, to, Date.now());
}

type SpanDialogProps = {
  /** The span that the fields contain at first. */
  readonly shown: TimeSpan;
  readonly onChoose: (span: TimeSpan) => void;
  readonly onClose: () => void;
};

/** Shows the dialog that asks for the beginning and end of the span that the plots show. */
export function SpanDialog({ shown, onChoose, onClose }: SpanDialogProps) {
  const [from, setFrom] = useState(writeTime(shown.from));
  const [to, setTo] = useState(writeTime(shown.to));
  const choose = async (): Promise<void> => {
    const { span, fault } = readSpan(from.trim(), to.trim(), Date.now());
    if (span === undefined) throw new RequestError('invalid_argument', fault);
    onChoose(span);
  };
  return (
    <FormDialog
      title="Choose a span"
      about={<p class="soft">The plots show this span and stand still. With a mouse, drag over a plot instead.</p>}
      confirm="Show the span"
      keep="Close"
      danger={false}
      failed="This is not a span of time."
      act={choose}
      onClose={onClose}
    >
      <TextField label="From, UTC" id="span-from" spellcheck={false} value={from} onText={setFrom} autofocus />
      <TextField label="To, UTC" id="span-to" spellcheck={false} value={to} onText={setTo} />
      <p class="hint">Such as 14:31, 14:31:12 or 2026-11-21T14:31. Without a day: the latest one. Kept for a day.</p>
    </FormDialog>
  );
}
