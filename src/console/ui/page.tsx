/**
 * Shows the parts of a page: its head, sections, figures, notices, and what takes the place of rows. Also loads parts
 * of the console when they are first shown, and catches the failure of a page.
 */
import { computed, signal } from '@preact/signals';
import { Component, type ComponentChildren, type ComponentType, type VNode } from 'preact';
import { lazy } from 'preact-iso';
import { useEffect, useId, useState } from 'preact/hooks';
import type { CompletenessPartFragment } from '../../../generated/console.ts';
import { brokenSince, liveState, type Query } from '../api/query.ts';
import { now, silentSince } from '../api/request.ts';
import { clientHref } from '../base.ts';
import { keep, recall } from '../session.ts';
import { useKeys } from './filters.tsx';
import { Button, Pips, Icon, Prose, type IconName } from './values.tsx';
import { clockAt, nameClass, sentenceCase, whole, zoneName } from './words.ts';

/** The name of the environment, which the relay writes into the page; empty if the setting LABEL gives none. */
export const label: string = document.querySelector<HTMLMetaElement>('meta[name="callboard-label"]')?.content ?? '';

/** The heading of the page that is shown; empty before the first one. */
export const pageTitle = signal('');

export type Crumbs = readonly { readonly href: string; readonly text: string }[];

type PageHeadProps = {
  readonly title: string;
  /** A sentence that says what the page shows. */
  readonly children?: ComponentChildren;
  readonly acts?: ComponentChildren;
  readonly crumbs?: Crumbs;
};

/** Shows the head of a page, and names the page in `pageTitle`. */
export function PageHead({ title, children, acts, crumbs }: PageHeadProps) {
  useEffect(() => {
    pageTitle.value = title;
  }, [title]);
  return (
    <>
      {crumbs && crumbs.length > 0 && (
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

/** Shows what a client sent about itself or about a part of it. Shows nothing without it. */
export function Metadata({ value }: { readonly value: unknown }) {
  if (value === null) return null;
  return (
    <Section title="Metadata" about="as the client sent it">
      <pre class="pre pre-wrap">{JSON.stringify(value, null, 2)}</pre>
    </Section>
  );
}

type Figure = {
  readonly name: string;
  readonly value: string;
  /** The unit, which is written smaller behind the value. */
  readonly unit?: string;
  readonly about?: string;
  /** Whether the value is one that must not be missed. */
  readonly isOver?: boolean;
};

export function Readouts({ figures }: { readonly figures: readonly Figure[] }) {
  return (
    <dl class="readouts">
      {figures.map(({ name, value, unit, about, isOver }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={isOver ? 'over' : undefined}>
            {value}
            {unit !== undefined && <small>{unit}</small>}
          </dd>
          {about !== undefined && <dd class="sub">{about}</dd>}
        </div>
      ))}
    </dl>
  );
}

type View = {
  readonly name: string;
  readonly href: string;
  readonly isCurrent: boolean;
  /** How many rows the view has, as text. */
  readonly count?: string | undefined;
};

/** Shows links to views of the same page. */
export function Views({ label: what, views }: { readonly label: string; readonly views: readonly View[] }) {
  return (
    <nav class="views" aria-label={what}>
      {views.map(({ name, href, isCurrent, count }) => (
        <a key={name} href={href} aria-current={isCurrent ? 'page' : undefined}>
          {name}
          {count !== undefined && <span class="n"> {count}</span>}
        </a>
      ))}
    </nav>
  );
}

/** The time for which the stream may be broken before that counts as an outage, in milliseconds. */
const BROKEN_MS = 3_000;

/** The outage that the frame shows: since when the relay does not answer, or sends no events. Null: there is none. */
export const outage = computed(() => {
  if (silentSince.value !== null) return { since: silentSince.value, isSilent: true };
  const since = liveState.value === 'broken' ? brokenSince.value : null;
  return since !== null && now.value - since >= BROKEN_MS ? { since, isSilent: false } : null;
});

/** Returns why acts cannot be sent now; undefined if they can. */
export function whyNoActs(): string | undefined {
  const { value } = outage;
  if (value === null || !value.isSilent) return undefined;
  return `The relay has not answered since ${clockAt(value.since)} ${zoneName()}`;
}

type ActButtonProps = {
  readonly children: ComponentChildren;
  readonly onClick: () => void;
  /** The classes besides `btn`. */
  readonly class?: string;
  readonly label?: string;
};

/** Shows the button of an act. While the relay does not answer, the button does nothing and says why. */
export function ActButton({ children, onClick, class: classes = '', label: said }: ActButtonProps) {
  const why = whyNoActs();
  return (
    <button
      class={`btn ${classes}`}
      type="button"
      aria-label={said && (why === undefined ? said : `${said} ${why}`)}
      aria-disabled={why !== undefined}
      title={why}
      onClick={() => why === undefined && onClick()}
    >
      {children}
      {why !== undefined && said === undefined && <span class="sr">. {why}</span>}
    </button>
  );
}

// Shows notices about an answer: errors, missing rows and silent nodes.

type NoticeProps = {
  readonly mark: IconName | VNode;
  readonly look?: 'error' | 'silent';
  readonly role?: 'alert' | 'note' | 'status';
  readonly children: ComponentChildren;
  readonly act?: ComponentChildren;
};

export function Notice({ mark, look, role = look === 'error' ? 'alert' : 'note', children, act }: NoticeProps) {
  return (
    <div class={look ? `notice notice-${look}` : 'notice'} role={role}>
      {typeof mark === 'string' ? <Icon name={mark} /> : mark}
      <p>{children}</p>
      {act}
    </div>
  );
}

/** Says what failed and how old the shown answer is. Shows nothing without an error, or for a refused token. */
export function ErrorNotice({ query, what }: { readonly query: Query<unknown>; readonly what: string }) {
  const { error, asOf, again, loading } = query;
  // The bar in the frame says that the relay does not answer, and the page keeps what it shows.
  const isSaid = error?.code === 'unreachable' && outage.value !== null;
  if (!error || error.code === 'unauthenticated' || isSaid) return null;
  const act = <Button look="btn-s" text="Try again" onClick={again} aria-disabled={loading} />;
  return (
    <Notice mark="warn" look="error" act={act}>
      <b>{titleOf(error.code, what)}</b> {SAID_BY_TITLE.includes(error.code) || <Prose text={error.message} />}{' '}
      <code>{error.code}</code>
      {asOf === null ? '' : `. What is shown is as of ${clockAt(asOf)} ${zoneName()}.`}
    </Notice>
  );
}

/** The codes of errors whose message would say the title again. */
const SAID_BY_TITLE: readonly string[] = ['unreachable', 'store_unavailable'];

function titleOf(code: string, what: string): string {
  if (code === 'unreachable') return 'The relay does not answer.';
  if (code === 'store_unavailable') return 'The store does not answer.';
  if (code === 'forbidden') return `You may not see ${what}.`;
  return `The relay could not read ${what}.`;
}

type ActErrorProps = {
  readonly title: string;
  readonly error: { readonly code: string; readonly message: string } | null;
};

/** Shows the error of an act, such as a refusal. Shows nothing without an error. */
export function ActError({ title, error }: ActErrorProps) {
  if (error === null) return null;
  return (
    <Notice mark="warn" look="error">
      <b>{title}</b> <Prose text={error.message} /> <code>{error.code}</code>
    </Notice>
  );
}

export function Information({ children }: { readonly children: ComponentChildren }) {
  return <Notice mark="info">{children}</Notice>;
}

/** Returns what an answer lacks, as a sentence. Null if it lacks nothing, or only what `named` nodes hold. */
function cutText(completeness: CompletenessPartFragment, named: readonly string[] = []): string | null {
  const lacking = completeness.sources.filter(({ complete }) => !complete);
  const shown = lacking.filter(({ reason, nodeId }) => reason !== 'NODE_SILENT' || !named.includes(nodeId ?? ''));
  if (completeness.complete || (lacking.length > 0 && shown.length === 0)) return null;
  const reasons = shown.map(({ reason, observed, limit, nodeId }) => {
    switch (reason) {
      case 'LIMIT_REACHED':
        return `${whole(observed)} were read, and the answer reached its bound${limit === null ? '' : ` of ${whole(limit)}`}, so there may be more`;
      case 'NODE_SILENT':
        return `${nodeId === null ? 'a node' : `node ${nodeId}`} did not answer, so what it holds may be missing`;
      case 'STORE_UNAVAILABLE':
        return 'the store did not answer for a part of it';
      case 'EVICTED':
        return 'older rows were dropped to make room for newer ones';
      case 'NOT_SUPPORTED':
        return 'this store cannot tell a part of it';
      case 'AWAITING_REPORTS':
        return 'the relay restarted, and clients that were connected before have not all reported again';
      case null:
        return 'a part of it is missing';
    }
  });
  const text = [...new Set(reasons)].join('; ');
  return text === '' ? 'A part of the answer is missing.' : `${sentenceCase(text)}.`;
}

type CutProps = {
  readonly completeness: CompletenessPartFragment | undefined;
  /** The silent nodes that the page names elsewhere. */
  readonly named?: readonly string[];
};

export function CutNotice({ completeness, named }: CutProps) {
  const text = completeness && cutText(completeness, named);
  return text ? <Notice mark="cut">{text}</Notice> : null;
}

type EmptyProps = {
  readonly title: string;
  /** A sentence or two. */
  readonly children: ComponentChildren;
  /** What is shown below the text. */
  readonly below?: ComponentChildren;
  /** The picture: an icon, or four bars that are empty (`none`: there is nothing) or full (`all`: a good end). */
  readonly mark?: 'none' | 'all' | IconName;
  readonly acts?: ComponentChildren;
};

export function Empty({ title, children, below, mark = 'none', acts }: EmptyProps) {
  return (
    <div class="empty">
      {mark === 'none' || mark === 'all' ? <Pips filled={mark === 'all' ? 4 : 0} wide /> : <Icon name={mark} />}
      <h2>{title}</h2>
      <p>{children}</p>
      {below}
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

/** The pause before a file that could not be loaded is requested again, in milliseconds. */
const LOAD_AGAIN_MS = 3_000;

/**
 * Returns a component that is loaded when it is first shown. While its file cannot be loaded, `Failed` is shown in its
 * place, and the file is requested again at intervals. The promise of the component never rejects, because the router
 * would then keep the former page.
 */
export function loaded<Props extends object, Room>(
  load: () => Promise<Room>,
  pick: (room: Room) => ComponentType<Props>,
  Failed: ComponentType<Props>,
  /** Called when the file could not be loaded again although the relay answers. */
  onUseless: () => void = () => undefined,
) {
  let part: ComponentType<Props> | null = null;
  let url: string | null = null;
  let tries = 0;
  const read = async (): Promise<ComponentType<Props>> => {
    try {
      // A browser remembers that the import of an address failed, so another address of the same file is imported.
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

/** The least time between two automatic reloads, in milliseconds. */
const RELOAD_MS = 60_000;
const RELOADED = 'callboard:reloaded';

/**
 * Loads the console again at the same address, because the relay was upgraded and its files have other names, or
 * because the browser remembers a file as failed. Does nothing while a dialog is open, or within RELOAD_MS of the last
 * time.
 */
export function reloadOnce(): void {
  const last = Number(recall('session', RELOADED) ?? 0);
  if (document.querySelector('dialog[open]') || Date.now() - last < RELOAD_MS) return;
  keep('session', RELOADED, String(Date.now()));
  location.reload();
}

/** Says what could not be shown, and offers to load the console again. */
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

/** Shows that the page inside it failed, in place of a blank page, until `place` changes, such as to another URL. */
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

/** Shows a link such as `alice / kiosk-1`, which leads to the client. */
export function ClientLink(id: { readonly userId: string; readonly clientId: string }) {
  return (
    <a href={clientHref(id)} class={nameClass(id.userId, id.clientId)}>
      {id.userId}
      <span class="who-of"> / </span>
      {id.clientId}
    </a>
  );
}

/** Shows the time of the oldest answer of a page that no event updates. The key `r` sends all requests again. */
export function AsOf({ queries }: { readonly queries: readonly Query<unknown>[] }) {
  const times = queries.flatMap(({ asOf }) => asOf ?? []);
  const refresh = (): void => queries.forEach((query) => query.again());
  useKeys({ r: refresh });
  return (
    <span class="as-of">
      {times.length > 0 && (
        <span>
          As of {clockAt(Math.min(...times))} {zoneName()}
        </span>
      )}
      <Button
        text="Refresh"
        onClick={refresh}
        aria-keyshortcuts="r"
        aria-disabled={queries.some(({ loading }) => loading)}
      />
    </span>
  );
}
