/** Shows the dialog that asks for the begin and end of the span that the plots show. */
import { useState } from 'preact/hooks';
import { Dialog } from '../ui/dialog.tsx';
import { ActError } from '../ui/notice.tsx';
import { writeTime } from '../ui/read-time.ts';
import { readSpan, type TimeSpan } from './span.ts';

type SpanDialogProps = {
  /** The span that the fields show at first. */
  readonly shown: TimeSpan;
  readonly onChoose: (span: TimeSpan) => void;
  readonly onClose: () => void;
};

export function SpanDialog({ shown, onChoose, onClose }: SpanDialogProps) {
  const [from, setFrom] = useState(writeTime(shown.from));
  const [to, setTo] = useState(writeTime(shown.to));
  const [fault, setFault] = useState<string | null>(null);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const read = readSpan(from.trim(), to.trim(), Date.now());
    if (read.span === undefined) return setFault(read.fault);
    onClose();
    onChoose(read.span);
  };
  return (
    <Dialog title="Choose a span" onClose={onClose}>
      <form onSubmit={submit}>
        <p class="soft">The plots show this span and stand still. With a mouse, drag over a plot instead.</p>
        {fault !== null && (
          <ActError title="That is no span." code="invalid_argument">
            {fault}
          </ActError>
        )}
        <TimeField name="from" label="From, UTC" value={from} onInput={setFrom} first />
        <TimeField name="to" label="To, UTC" value={to} onInput={setTo} />
        <p class="hint">Such as 14:31, 14:31:12 or 2026-11-21T14:31. Without a day: the latest one. Kept for a day.</p>
        <div class="dialog-acts">
          <button class="btn" type="button" onClick={onClose}>
            Leave it
          </button>
          <button class="btn btn-primary" type="submit">
            Show the span
          </button>
        </div>
      </form>
    </Dialog>
  );
}

type TimeFieldProps = {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly first?: boolean;
};

function TimeField({ name, label, value, onInput, first = false }: TimeFieldProps) {
  return (
    <div class="field">
      <label for={`span-${name}`}>{label}</label>
      <input
        class="in"
        id={`span-${name}`}
        autocomplete="off"
        spellcheck={false}
        autofocus={first}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </div>
  );
}
