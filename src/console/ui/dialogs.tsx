/** Shows modal dialogs, in the middle or as a drawer at the side. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { RequestError, errorOf } from '../api/request.ts';
import { ActError } from './page.tsx';

type DialogProps = {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
  readonly class?: string;
  /** Whether the children show the title themselves, with the id that they receive. */
  readonly ownTitle?: boolean;
};

/** Shows a dialog, which opens when it is mounted and returns the focus when it is removed. Escape closes it. */
export function Dialog({ title, children, onClose, class: classes = 'dialog', ownTitle = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // A layout effect runs before the browser paints. Keys that are pressed right after the button go to the dialog, not
  // to the page.
  useLayoutEffect(() => {
    const element = dialog.current;
    if (!element) return undefined;
    const before = document.activeElement;
    element.showModal();
    return () => {
      element.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const cancel = (event: Event): void => {
    event.preventDefault();
    onClose();
  };
  return (
    <dialog
      ref={dialog}
      class={classes}
      onCancel={cancel}
      {...(ownTitle ? { 'aria-label': title } : { 'aria-labelledby': id })}
    >
      {!ownTitle && <h2 id={id}>{title}</h2>}
      {children}
    </dialog>
  );
}

// Shows the dialog that asks for a reason before an act, runs the act, and shows why it was refused.

/** The limits of the reason's length, in characters. With `min` above 0 the reason is required. */
type Bounds = { readonly min: number; readonly max: number };

type ReasonDialogProps = {
  readonly title: string;
  /** The text that says what the act does. */
  readonly children: ComponentChildren;
  readonly hint: string;
  readonly bounds?: Bounds;
  /** The labels of two buttons: `confirm` runs the act, `keep` closes the dialog without it. */
  readonly confirm: string;
  readonly keep: string;
  readonly danger?: boolean;
  /** The title that is shown when the act is refused. */
  readonly failed: string;
  /** Whether the dialog stays open after the act, because its owner replaces it. */
  readonly stays?: boolean;
  /**
   * Runs the act with the reason, which is null if the user gave none. Rejects with RequestError. The dialog closes
   * when it resolves.
   */
  readonly act: (reason: string | null) => Promise<void>;
  readonly onClose: () => void;
};

export function ReasonDialog(props: ReasonDialogProps) {
  const {
    title,
    children,
    hint,
    bounds = { min: 0, max: 256 },
    confirm,
    keep,
    danger = true,
    failed,
    act,
    onClose,
    stays = false,
  } = props;
  const [error, setError] = useState<RequestError | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (busy || !(event.currentTarget instanceof HTMLFormElement)) return;
    const reason = String(new FormData(event.currentTarget).get('reason') ?? '').trim();
    if (reason.length < bounds.min)
      return setError(new RequestError('invalid_argument', `Write at least ${bounds.min} characters.`));
    setBusy(true);
    act(reason === '' ? null : reason).then(stays ? undefined : onClose, (cause: unknown) => {
      setError(errorOf(cause));
      setBusy(false);
    });
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        {error && (
          <ActError title={failed} code={error.code}>
            {error.message}
          </ActError>
        )}
        <div class="field">
          <label for="reason">Reason</label>
          <input class="in" id="reason" name="reason" maxlength={bounds.max} autocomplete="off" autofocus />
          <p class="hint">{hint}</p>
        </div>
        <div class="dialog-acts">
          <button class="btn" type="button" onClick={onClose}>
            {keep}
          </button>
          <button class={`btn ${danger ? 'btn-danger' : 'btn-primary'}`} type="submit" aria-disabled={busy}>
            {confirm}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
