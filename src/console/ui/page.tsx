/** Shows the parts that pages have in common: headings, sections, facts, figures, views, and buttons of operations. */
import { computed, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId } from 'preact/hooks';
import { brokenSince, liveState } from '../api/live-state.ts';
import type { Query } from '../api/query.ts';
import { silentSince } from '../api/request.ts';
import { now } from '../api/visible.ts';
import { clientHref } from '../base.ts';
import { useKeys } from './keys.ts';
import { Button } from './values.tsx';
import { nameClass } from './text-format.ts';
import { clockAt, zoneName } from './zones.ts';

/**
 * The name of the environment, from the relay's setting LABEL, which the relay writes into the page; empty if it is not
 * set.
 */
export const label: string = document.querySelector<HTMLMetaElement>('meta[name="callboard-label"]')?.content ?? '';

/** The heading of the current page; empty before the first page. */
export const pageTitle = signal('');

export type Crumbs = readonly { readonly href: string; readonly text: string }[];

type PageHeadProps = {
  readonly title: string;
  /** A sentence about what the page shows. */
  readonly children?: ComponentChildren;
  readonly acts?: ComponentChildren;
  readonly crumbs?: Crumbs;
};

/** Shows the heading of a page, and stores it in `pageTitle`. */
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

/** Shows the metadata that a client sent about itself or about a part of it; nothing if there is none. */
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
  /** The unit, which is shown smaller after the value. */
  readonly unit?: string;
  readonly about?: string;
  /** Whether the value must be noticed. */
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
  /** The number of rows of the view, as text. */
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

/** How long the stream may be broken before that counts as an outage, in milliseconds. */
const BROKEN_MS = 3_000;

/**
 * The outage that the frame shows: the time since which the relay does not answer, or sends no events. Null: there is
 * none.
 */
export const outage = computed(() => {
  if (silentSince.value !== null) return { since: silentSince.value, isSilent: true };
  const since = liveState.value === 'broken' ? brokenSince.value : null;
  return since !== null && now.value - since >= BROKEN_MS ? { since, isSilent: false } : null;
});

/** Returns why no operation can be sent now; undefined if operations can be sent. */
export function whyNoActs(): string | undefined {
  const { value } = outage;
  if (value === null || !value.isSilent) return undefined;
  return `The relay has not answered since ${clockAt(value.since)} ${zoneName()}`;
}

type ActButtonProps = {
  readonly children: ComponentChildren;
  readonly onClick: () => void;
  /** CSS classes in addition to `btn`. */
  readonly class?: string;
  readonly label?: string;
};

/** Shows the button of an operation. While the relay does not answer, the button does nothing and states why. */
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

/** Shows that a value is absent: an en dash, with the reason as tooltip and for screen readers. */
export function Nil({ why }: { readonly why: string }) {
  return (
    <span class="nil" title={why}>
      <span aria-hidden="true">–</span>
      <span class="sr">{why}</span>
    </span>
  );
}

/** Shows a count, in a quiet colour if it is 0. */
export function Count({ value, text }: { readonly value: number; readonly text?: string }) {
  return value === 0 ? <span class="nil">0</span> : <>{text ?? value}</>;
}

/** Shows a link such as `alice / kiosk-1` to the page of a client. */
export function ClientLink(id: { readonly userId: string; readonly clientId: string }) {
  return (
    <a href={clientHref(id)} class={nameClass(id.userId, id.clientId)}>
      {id.userId}
      <span class="who-of"> / </span>
      {id.clientId}
    </a>
  );
}

/** Shows the time of the oldest answer on a page that no event updates. The key `r` repeats all requests. */
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
