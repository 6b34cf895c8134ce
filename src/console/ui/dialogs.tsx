/** Shows modal dialogs and drawers, dialogs with a form, fields and choices, and menus of buttons. */
import type { ComponentChildren, JSX } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { RequestError, errorOf } from '../api/request.ts';
import { ActError } from './notices.tsx';
import { whyNoActs } from './page.tsx';
import { Icon } from './icons.tsx';
import { Button } from './values.tsx';

type DialogProps = {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
  readonly class?: string;
  /** Whether the children show the title themselves. */
  readonly ownTitle?: boolean;
};

/** Shows a dialog. It opens when it is mounted, and returns the focus when it is removed. Escape calls `onClose`. */
export function Dialog({ title, children, onClose, class: classes = 'dialog', ownTitle = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // A layout effect, because it runs before the browser paints: keys pressed right after the button then go to the
  // dialog.
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

/**
 * Focuses the first field inside, unless the user is already in a field, or a touch screen’s keyboard would cover it.
 */
export function focusFirstField(element: HTMLElement | null): void {
  if (document.activeElement?.matches(FIELDS) || matchMedia('(pointer: coarse)').matches) return;
  element?.querySelector<HTMLElement>(FIELDS)?.focus();
}

const FIELDS = 'input, textarea, select';

// Dialogs with a form, which perform an operation and show why it was refused.

type FormDialogProps = {
  readonly title: string;
  /** The text above the fields, which describes the operation. */
  readonly about: ComponentChildren;
  /** The fields. */
  readonly children: ComponentChildren;
  /** The labels of two buttons: `confirm` performs the operation, and `keep` closes the dialog without it. */
  readonly confirm: string;
  readonly keep: string;
  /** The label of the first button while the operation runs, if it differs. */
  readonly busyText?: string;
  readonly danger?: boolean;
  /** Whether the operation may be performed now. Absent: always. */
  readonly isReady?: boolean;
  /** The title of the error if the operation is refused. */
  readonly failed: string;
  /** Whether the dialog stays open after the operation, because its owner replaces it. */
  readonly stays?: boolean;
  /**
   * Performs the operation with the values of the form. Then the dialog closes, or shows the error if the promise
   * rejects.
   */
  readonly act: (values: FormData) => Promise<void>;
  /** A second operation, with the label of its button. It is performed like `act`, but never by Enter. */
  readonly other?: { readonly text: string; readonly act: (values: FormData) => Promise<void> };
  readonly onClose: () => void;
  /** Called by the button `keep`. Absent: that button closes the dialog. */
  readonly onKeep?: () => void;
};

export function FormDialog(props: FormDialogProps) {
  const { title, about, children, confirm, keep, busyText = confirm, danger = true, isReady = true } = props;
  const { failed, stays = false, act, other, onClose, onKeep = onClose } = props;
  const [error, setError] = useState<RequestError | null>(null);
  const [busy, setBusy] = useState(false);
  const why = whyNoActs();
  const run = (chosen: typeof act, form: EventTarget | null): void => {
    if (busy || !isReady || why !== undefined || !(form instanceof HTMLFormElement)) return;
    setBusy(true);
    chosen(new FormData(form)).then(stays ? undefined : onClose, (cause: unknown) => {
      setError(errorOf(cause));
      setBusy(false);
    });
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    run(act, event.currentTarget);
  };
  const cannot = busy || !isReady || why !== undefined;
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {about}
        <ActError title={failed} error={error} />
        {children}
        {why && (
          <p class="soft" role="status">
            {why}. It can be sent when the relay answers.
          </p>
        )}
        <div class="dialog-acts">
          <Button text={keep} onClick={onKeep} />
          {other && (
            <Button
              text={other.text}
              aria-disabled={cannot}
              onClick={(event) => run(other.act, event.currentTarget.form)}
            />
          )}
          <Button
            look={danger ? 'btn-danger' : 'btn-primary'}
            text={busy ? busyText : confirm}
            type="submit"
            aria-disabled={cannot}
          />
        </div>
      </form>
    </Dialog>
  );
}

type ReasonDialogProps = Omit<FormDialogProps, 'about' | 'act' | 'children'> & {
  /** Describes what the operation does. */
  readonly children: ComponentChildren;
  readonly hint: string;
  /** The limits on the length of the reason, in characters. If `min` is above 0, the reason is required. */
  readonly bounds?: { readonly min: number; readonly max: number };
  /** Performs the operation with the reason, which is null if the user gave none. */
  readonly act: (reason: string | null) => Promise<void>;
  /** Fields before the reason. */
  readonly fields?: ComponentChildren;
};

/** Shows a dialog that asks for a reason before an operation. The children describe the operation. */
export function ReasonDialog({
  children,
  fields,
  hint,
  bounds = { min: 0, max: 256 },
  act,
  ...dialog
}: ReasonDialogProps) {
  const actWith = async (values: FormData): Promise<void> => {
    const reason = String(values.get('reason') ?? '').trim();
    if (reason.length < bounds.min)
      throw new RequestError('invalid_argument', `Write at least ${bounds.min} characters.`);
    await act(reason === '' ? null : reason);
  };
  return (
    <FormDialog {...dialog} about={children} act={actWith}>
      {fields}
      <TextField label="Reason" id="reason" name="reason" maxlength={bounds.max} autofocus={!fields} hint={hint} />
    </FormDialog>
  );
}

type MenuProps = {
  /** The label of the button that opens the menu. */
  readonly text: string;
  /** The buttons of the menu. */
  readonly children: ComponentChildren;
};

/** Shows a button that opens a short list of buttons. Escape, or moving the focus elsewhere, closes the list. */
export function Menu({ text, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = (): void => menu.current?.removeAttribute('open');
  const onKeyDown = ({ key }: KeyboardEvent): void => {
    if (key !== 'Escape') return;
    close();
    menu.current?.querySelector('summary')?.focus();
  };
  const onFocusOut = ({ relatedTarget }: FocusEvent): void => {
    if (relatedTarget instanceof Node && !menu.current?.contains(relatedTarget)) close();
  };
  return (
    <details class="menu" ref={menu} onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <summary class="btn">
        {text} <Icon name="down" />
      </summary>
      <div class="menu-list">{children}</div>
    </details>
  );
}

type TextFieldProps = {
  readonly id: string;
  readonly label: string;
  /** The text below the field. */
  readonly hint?: string;
  readonly onText?: (text: string) => void;
  readonly name?: string;
  readonly value?: string;
  readonly maxlength?: number;
  readonly spellcheck?: boolean;
  readonly autofocus?: boolean;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  readonly 'aria-controls'?: string;
};

/** Shows a text field with its label. Browsers do not offer previous inputs for it. */
export function TextField({ id, label, hint, onText, ...input }: TextFieldProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        class="in"
        id={id}
        autocomplete="off"
        {...input}
        onInput={(event) => onText?.(event.currentTarget.value)}
      />
      {hint !== undefined && <p class="hint">{hint}</p>}
    </div>
  );
}

type SelectProps = {
  readonly id: string;
  readonly value: string | number;
  readonly choices: readonly { readonly value: string | number; readonly text: string }[];
  readonly onChoose: (value: string) => void;
} & Pick<JSX.IntrinsicElements['select'], 'aria-label' | 'aria-invalid' | 'aria-describedby' | 'required'>;

/** Shows a choice as a menu. */
export function Select({ choices, onChoose, ...select }: SelectProps) {
  return (
    <select class="in" {...select} onChange={(event) => onChoose(event.currentTarget.value)}>
      {choices.map(({ value, text }) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

type SwitchProps<Value> = {
  /** The name of the choice, for screen readers. */
  readonly legend: string;
  readonly name: string;
  readonly choices: readonly {
    readonly value: Value;
    readonly text: ComponentChildren;
    readonly id?: string;
    readonly title?: string;
    readonly disabled?: boolean;
  }[];
  readonly chosen: Value;
  readonly onChoose: (value: Value) => void;
};

/** Shows a choice among a few values side by side. */
export function Switch<Value>({ legend, name, choices, chosen, onChoose }: SwitchProps<Value>) {
  return (
    <fieldset class="switch">
      <legend class="sr">{legend}</legend>
      {choices.map(({ value, text, title, ...input }) => (
        <label key={String(value)} title={title}>
          <input type="radio" name={name} {...input} checked={value === chosen} onChange={() => onChoose(value)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

/** Shows the closing button below the content of a dialog. */
export function CloseAct({ onClose, text = 'Close' }: { readonly onClose: () => void; readonly text?: string }) {
  return (
    <div class="dialog-acts">
      <Button text={text} onClick={onClose} />
    </div>
  );
}
