/** Shows notices about an answer: errors, missing rows and silent nodes. */
import type { ComponentChildren, VNode } from 'preact';
import type { CompletenessPartFragment } from '../../../generated/console.ts';
import type { Query } from '../api/query.ts';
import { whole } from './amounts.ts';
import { Icon, type IconName } from './icons.tsx';
import { outage } from './page.tsx';
import { Prose } from './payload.tsx';
import { Pips } from './shapes.tsx';
import { Button } from './values.tsx';
import { sentenceCase } from './text-format.ts';
import { clockAt, zoneName } from './zones.ts';

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

/**
 * States what failed and how old the shown answer is. Shows nothing if there is no error, or if the token was refused.
 */
export function ErrorNotice({ query, what }: { readonly query: Query<unknown>; readonly what: string }) {
  const { error, asOf, again, loading } = query;
  // The frame already shows that the relay does not answer, and the page keeps its content.
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

/** The codes of errors whose message would only repeat the title. */
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

/** Shows the error of an operation, such as a refusal; nothing if there is no error. */
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

/** Returns a sentence about what an answer lacks. Null if it lacks nothing, or only data of the nodes in `named`. */
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
  /** The silent nodes that the page already names elsewhere. */
  readonly named?: readonly string[];
};

export function CutNotice({ completeness, named }: CutProps) {
  const text = completeness && cutText(completeness, named);
  return text ? <Notice mark="cut">{text}</Notice> : null;
}

type EmptyProps = {
  readonly title: string;
  /** One or two sentences. */
  readonly children: ComponentChildren;
  /** What is shown below the text. */
  readonly below?: ComponentChildren;
  /** The picture: an icon, or four bars that are empty (`none`: nothing exists) or full (`all`: a good result). */
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

/** Shown instead of a page until its first answer arrives, so that nothing moves later. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="quiet" role="status">
      Reading {what}…
    </p>
  );
}
