/** Shows what a page has in place of rows: why there are none, and what to do next. */
import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';
import { Pips } from './shape.tsx';

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
