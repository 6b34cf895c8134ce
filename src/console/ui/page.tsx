/** Shows the head of a page, its sections, and the pager of a list. */
import { Component, type ComponentChildren } from 'preact';
import { useEffect, useId } from 'preact/hooks';
import type { CompletenessPartFragment } from '../../../generated/console.ts';
import { visibleText } from '../../protocol/visible-text.ts';
import type { Query } from '../api/query.ts';
import { pagePath, segments } from '../base.ts';
import { useKeys } from './filters.tsx';
import { Pips, Icon, type IconName } from './values.tsx';
import { clock, whole } from './words.ts';

type PageHeadProps = {
  readonly title: string;
  /** A sentence that says what the page shows. */
  readonly children?: ComponentChildren;
  readonly acts?: ComponentChildren;
  readonly crumbs?: readonly { readonly href: string; readonly text: string }[];
};

export function PageHead({ title, children, acts, crumbs }: PageHeadProps) {
  useEffect(() => setTitle(title), [title]);
  return (
    <>
      {crumbs && (
        <ol class="crumbs" role="list" aria-label="Where this is">
          {crumbs.map(({ href, text }) => (
            <li key={href}>
              <a href={href}>{text}</a>
            </li>
          ))}
        </ol>
      )}
      <div class="head">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          {children !== undefined && <p>{children}</p>}
        </div>
        {acts && <div class="acts">{acts}</div>}
      </div>
    </>
  );
}

type SectionProps = {
  readonly title: string;
  /** A less prominent sentence about what is counted. */
  readonly about?: ComponentChildren;
  readonly side?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly class?: string;
};

export function Section({ title, about, side, children, class: classes }: SectionProps) {
  const id = useId();
  return (
    <section class={`sec ${classes ?? ''}`} aria-labelledby={id}>
      <div class="sec-head">
        <h2 id={id}>{title}</h2>
        {about !== undefined && <p>{about}</p>}
        {side}
      </div>
      {children}
    </section>
  );
}

/** Shows a list of names and values. */
export function Facts({ rows }: { readonly rows: readonly (readonly [string, ComponentChildren] | null)[] }) {
  return (
    <dl class="facts">
      {rows.map(
        (row) =>
          row && (
            <>
              <dt>{row[0]}</dt>
              <dd>{row[1]}</dd>
            </>
          ),
      )}
    </dl>
  );
}

type PagerProps = {
  readonly children: ComponentChildren;
  readonly isCut?: boolean;
  readonly first: string | null;
  readonly next: string | null;
  readonly size: number;
};

/** Shows the line under a list: what is shown, and links to the first and the next page. */
export function Pager({ children, isCut = false, first, next, size }: PagerProps) {
  return (
    <div class="pager">
      <p class="cut">
        {isCut && <Icon name="cut" />}
        <span>{children}</span>
      </p>
      {(first ?? next) !== null && (
        <span class="pager-acts">
          {first !== null && (
            <a class="btn" href={first}>
              First page
            </a>
          )}
          {next !== null && (
            <a class="btn" href={next}>
              Next {size}
            </a>
          )}
        </span>
      )}
    </div>
  );
}

// Shows notices about an answer: errors, missing rows and silent nodes.

/** Says what failed, what is still valid, and when the request is repeated. Shows nothing without an error. */
export function ErrorNotice({ query, what }: { readonly query: Query<unknown>; readonly what: string }) {
  const { error, asOf, again, loading } = query;
  if (!error || error.code === 'unauthenticated') return null;
  return (
    <div class="notice notice-error" role="alert">
      <Icon name="warn" />
      <p>
        <b>{titleOf(error.code, what)}</b> {error.message} <code>{error.code}</code>
        {asOf === null ? '' : `. What is shown is as of ${clock(new Date(asOf).toISOString())} UTC.`}
      </p>
      <button class="btn btn-s" type="button" onClick={again} aria-disabled={loading}>
        Try again
      </button>
    </div>
  );
}

function titleOf(code: string, what: string): string {
  if (code === 'unreachable') return 'The relay does not answer.';
  if (code === 'store_unavailable') return 'The store does not answer.';
  if (code === 'forbidden') return `You may not see ${what}.`;
  return `The relay could not read ${what}.`;
}

/** Shows the error of an act, such as a refusal. */
export function ActError({ title, code, children }: ActErrorProps) {
  return (
    <div class="notice notice-error" role="alert">
      <Icon name="warn" />
      <p>
        <b>{title}</b> {children} <code>{code}</code>
      </p>
    </div>
  );
}
type ActErrorProps = { readonly title: string; readonly code: string; readonly children: ComponentChildren };

export function Information({ children }: { readonly children: ComponentChildren }) {
  return (
    <div class="notice" role="note">
      <Icon name="info" />
      <p>{children}</p>
    </div>
  );
}

/**
 * Returns a sentence about an answer that may lack rows. Null for a complete answer, and for one that lacks only what
 * `named` nodes hold.
 */
function cutText(completeness: CompletenessPartFragment, named: readonly string[] = []): string | null {
  const lacking = completeness.sources.filter(({ complete }) => !complete);
  const shown = lacking.filter(({ reason, nodeId }) => reason !== 'NODE_SILENT' || !named.includes(nodeId ?? ''));
  if (completeness.complete || (lacking.length > 0 && shown.length === 0)) return null;
  const reasons = shown.map(({ reason, observed, limit, nodeId }) => {
    switch (reason) {
      case 'LIMIT_REACHED':
        return `${whole(observed)} were read, and the answer reached its bound${limit === null ? '' : ` of ${whole(limit)}`}, so there may be more`;
      case 'NODE_SILENT':
        return `${nodeId ?? 'a node'} did not answer, so what it holds may be missing`;
      case 'STORE_UNAVAILABLE':
        return 'the store did not answer for a part of it';
      case 'EVICTED':
        return 'older rows were dropped to make room for newer ones';
      case 'NOT_SUPPORTED':
        return 'this store cannot tell a part of it';
      default:
        return 'a part of it is missing';
    }
  });
  const text = [...new Set(reasons)].join('; ');
  return text === '' ? 'A part of the answer is missing.' : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

type CutProps = {
  readonly completeness: CompletenessPartFragment | undefined;
  /** The silent nodes that the page names elsewhere. */
  readonly named?: readonly string[];
};

/** Shows a notice that an answer lacks rows. */
export function CutNotice({ completeness, named }: CutProps) {
  const text = completeness && cutText(completeness, named);
  if (!text) return null;
  return (
    <div class="notice" role="note">
      <Icon name="cut" />
      <p>{text}</p>
    </div>
  );
}

// Shows what a page has in place of rows: why there are none, and what to do next.

type EmptyProps = {
  readonly title: string;
  readonly children?: ComponentChildren;
  /** The picture: an icon, or four bars that are empty (`none`: there is nothing) or full (`all`: a good end). */
  readonly mark?: 'none' | 'all' | IconName;
  readonly acts?: ComponentChildren;
};

export function Empty({ title, children, mark = 'none', acts }: EmptyProps) {
  return (
    <div class="empty">
      {mark === 'none' || mark === 'all' ? <Pips filled={mark === 'all' ? 4 : 0} wide /> : <Icon name={mark} />}
      <h2>{title}</h2>
      {children}
      {acts && <div class="acts">{acts}</div>}
    </div>
  );
}

/** Takes the place of a page until its first answer arrives, so that nothing moves later. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="quiet" role="status">
      Reading {what}…
    </p>
  );
}

/** Shows that a value is absent: an en dash, with the reason as title and for screen readers. */
export function Nil({ why }: { readonly why: string }) {
  return (
    <span class="nil" title={why}>
      <span aria-hidden="true">–</span>
      <span class="sr">{why}</span>
    </span>
  );
}

/** Shows a count, in a quiet colour when it is 0. */
export function Count({ value, text }: { readonly value: number; readonly text?: string }) {
  return value === 0 ? <span class="nil">0</span> : <>{text ?? value}</>;
}

// Shows that a page failed, in place of a blank page.

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

// Shows links to the pages of users, clients and commands.

type ClientId = { readonly userId: string; readonly clientId: string };
type CommandId = ClientId & { readonly commandId: string };

export const clientHref = ({ userId, clientId }: ClientId): string => pagePath(`clients/${segments(userId, clientId)}`);
export const callHref = ({ userId, clientId, commandId }: CommandId): string =>
  pagePath(`calls/${segments(userId, clientId, commandId)}`);
export const userHref = (userId: string): string => pagePath(`users/${segments(userId)}`);
export const streamHref = (stream: string): string => pagePath(`history?stream=${encodeURIComponent(stream)}`);
export const nodesHref = (): string => pagePath('nodes');

/** Shows a link such as `alice / kiosk-1`, which leads to the client. */
export function ClientLink(id: ClientId) {
  return (
    <a href={clientHref(id)} title={`${id.userId} / ${id.clientId}`}>
      {id.userId}
      <span class="who-of"> / </span>
      {id.clientId}
    </a>
  );
}

// Shows when a page was read, and a button that reads it again. For pages that no event updates.

/** Shows the time of the oldest answer. The button and the key `r` send all requests again. */
export function AsOf({ queries }: { readonly queries: readonly Query<unknown>[] }) {
  const times = queries.flatMap(({ asOf }) => asOf ?? []);
  const refresh = (): void => queries.forEach((query) => query.again());
  useKeys({ r: refresh });
  return (
    <span class="as-of">
      {times.length > 0 && <span>As of {clock(new Date(Math.min(...times)).toISOString())} UTC</span>}
      <button
        class="btn"
        type="button"
        onClick={refresh}
        aria-keyshortcuts="r"
        aria-disabled={queries.some(({ loading }) => loading)}
      >
        Refresh
      </button>
    </span>
  );
}

// Sets the title of the tab: the page, then the environment.

function setTitle(page: string): void {
  document.title = visibleText([page, label, 'Callboard'].filter((part) => part !== '').join(' · '));
}

// Reads the name of the environment, which the setting CONSOLE_LABEL gives. The relay writes it into the page.

/** The name of the environment; empty if none is configured. */
export const label: string = document.querySelector<HTMLMetaElement>('meta[name="callboard-label"]')?.content ?? '';
