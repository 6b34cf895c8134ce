/** Shows the head of a page, its sections, and the pager of a list. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId } from 'preact/hooks';
import { setTitle } from '../shell/title.ts';
import { Icon } from './icon.tsx';

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
