/** Shows that a page failed, in place of a blank page. */
import { Component, type ComponentChildren } from 'preact';
import { Icon } from './icon.tsx';

type BoundaryProps = { readonly children: ComponentChildren; readonly place: string };

/**
 * Catches errors of the components inside it. When `place` changes, such as to another URL, it shows the components
 * again.
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
      <div class="notice notice-error" role="alert">
        <Icon name="warn" />
        <p>
          <b>This page failed.</b> {this.state.failed} The other pages work; loading it again may help.
        </p>
        <button class="btn btn-s" type="button" onClick={() => location.reload()}>
          Load again
        </button>
      </div>
    );
  }
}
