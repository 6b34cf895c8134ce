/** Shows modal dialogs, in the middle or as a drawer at the side. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

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
