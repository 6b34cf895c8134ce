/** Opens the drawer that invokes an action, from any page. The drawer is loaded when it first opens. */
import { signal } from '@preact/signals';
import { ErrorBoundary } from 'preact-iso';
import { CloseAct, Dialog } from '../ui/dialogs.tsx';
import { useKeys } from '../ui/keys.ts';
import { LoadFault, loaded } from '../ui/loaded.tsx';
import { ActButton } from '../ui/page.tsx';
import type { DrawerProps, InvokeStart } from './drawer.tsx';

/** The values with which the drawer begins; null while the drawer is closed. */
const start = signal<InvokeStart | null>(null);

export const openInvoke = (given: InvokeStart): void => void (start.value = given);
const close = (): void => void (start.value = null);

const Drawer = loaded(
  () => import('./drawer.tsx'),
  (room) => room.Drawer,
  ({ onClose }: DrawerProps) => (
    <Dialog title="Invoke an action" onClose={onClose}>
      <LoadFault what="The form" />
      <CloseAct onClose={onClose} />
    </Dialog>
  ),
);

export function InvokeDrawer() {
  if (start.value === null) return null;
  return (
    <ErrorBoundary>
      <Drawer start={start.value} onClose={close} />
    </ErrorBoundary>
  );
}

/** Shows a page's button that opens the drawer, as the key `i` does. */
export function InvokeButton({ start: given = {} }: { readonly start?: InvokeStart }) {
  const open = (): void => openInvoke(given);
  useKeys({ i: open });
  return (
    <ActButton class="btn-primary" onClick={open}>
      Invoke an action
    </ActButton>
  );
}

type ActionProps = { readonly action: string; readonly userId?: string; readonly clientId?: string };

/** Shows a row's button that opens the drawer for the row's action. */
export function InvokeAction(given: ActionProps) {
  return (
    <ActButton class="btn-s" label={`Invoke ${given.action}…`} onClick={() => openInvoke(given)}>
      Invoke…
    </ActButton>
  );
}
