/** Loads parts of the console when they are first shown, and shows an error in place of a page that fails. */
import { Component, type ComponentChildren, type ComponentType } from 'preact';
import { lazy } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { keep, recall } from '../browser-storage.ts';
import { Notice } from './notices.tsx';
import { Button } from './values.tsx';

/** The delay before a file that could not be loaded is requested again, in milliseconds. */
const LOAD_AGAIN_MS = 3_000;

/**
 * Returns a component whose file is loaded when the component is first shown. While the file cannot be loaded, `Failed`
 * is shown instead, and the file is requested again at intervals. The promise of the component never rejects, because
 * the router would then keep showing the previous page.
 */
export function loaded<Props extends object, Room>(
  load: () => Promise<Room>,
  pick: (room: Room) => ComponentType<Props>,
  Failed: ComponentType<Props>,
  /** Called when loading the file failed again although the relay answers. */
  onUseless: () => void = () => undefined,
) {
  let part: ComponentType<Props> | null = null;
  let url: string | null = null;
  let tries = 0;
  const read = async (): Promise<ComponentType<Props>> => {
    try {
      // A browser remembers that the import of a URL failed, so the file is imported from another URL.
      const room: Room = await (url === null ? load() : import(/* @vite-ignore */ `${url}?again=${++tries}`));
      return (part = pick(room));
    } catch (error) {
      url ??= /https?:\S+?\.js/.exec(String(error))?.[0] ?? null;
      throw error;
    }
  };
  function Unloaded(props: Props) {
    const [, setTurn] = useState(0);
    useEffect(() => {
      if (part !== null) return undefined;
      const draw = (): void => setTurn((was) => was + 1);
      const again = (): Promise<void> =>
        read().then(draw, async () => {
          if (url !== null && (await fetch(url).catch(() => null)) !== null) onUseless();
          draw();
        });
      const timer = setInterval(() => void again(), LOAD_AGAIN_MS);
      return () => clearInterval(timer);
    }, [part]);
    const Shown = part ?? Failed;
    return <Shown {...props} />;
  }
  return lazy(() => read().catch(() => Unloaded));
}

/** The minimum time between two automatic reloads, in milliseconds. */
const RELOAD_MS = 60_000;
const RELOADED = 'callboard:reloaded';

/**
 * Reloads the console at the same URL. This is needed if the relay was upgraded and its files have other names, or if
 * the browser remembers a file as failed. Does nothing while a dialog is open, or within RELOAD_MS of the last reload.
 */
export function reloadOnce(): void {
  const last = Number(recall('session', RELOADED) ?? 0);
  if (document.querySelector('dialog[open]') || Date.now() - last < RELOAD_MS) return;
  keep('session', RELOADED, String(Date.now()));
  location.reload();
}

/** States what could not be shown, and offers to reload the console. */
function FaultNotice({ children }: { readonly children: ComponentChildren }) {
  const act = <Button look="btn-s" text="Load again" onClick={() => location.reload()} />;
  return (
    <Notice mark="warn" look="error" act={act}>
      {children}
    </Notice>
  );
}

export function LoadFault({ what }: { readonly what: string }) {
  return (
    <FaultNotice>
      <b>{what} could not be loaded.</b> The relay does not answer, or it was upgraded since this tab was opened. It is
      tried again every few seconds; “Load again” loads the console anew.
    </FaultNotice>
  );
}

type BoundaryProps = { readonly children: ComponentChildren; readonly place: string };

/**
 * Shows an error instead of a blank page if the page inside it fails. It tries again when `place` changes, for example
 * to another URL.
 */
export class Boundary extends Component<BoundaryProps, { readonly failed: string | null }> {
  override state: { readonly failed: string | null } = { failed: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ failed: error instanceof Error ? error.message : String(error) });
  }

  override componentDidUpdate(before: BoundaryProps): void {
    if (before.place !== this.props.place && this.state.failed !== null) this.setState({ failed: null });
  }

  override render() {
    if (this.state.failed === null) return this.props.children;
    return (
      <FaultNotice>
        <b>This page failed.</b> {this.state.failed} The other pages work; loading it again may help.
      </FaultNotice>
    );
  }
}
