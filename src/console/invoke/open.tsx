/** Opens the drawer that invokes an action, from any page. The drawer itself is loaded when it first opens. */
import { signal } from '@preact/signals';
import { ErrorBoundary, lazy } from 'preact-iso';
import type { InvokeStart } from './drawer.tsx';

/** The call that the drawer starts with; null while the drawer is closed. */
const start = signal<InvokeStart | null>(null);

export const openInvoke = (given: InvokeStart): void => void (start.value = given);
const close = (): void => void (start.value = null);

const Drawer = lazy(() => import('./drawer.tsx').then((room) => room.Drawer));

export function InvokeDrawer() {
  if (start.value === null) return null;
  return (
    <ErrorBoundary>
      <Drawer start={start.value} onClose={close} />
    </ErrorBoundary>
  );
}
