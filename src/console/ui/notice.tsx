/** Shows notices about an answer: errors, missing rows and silent nodes. */
import type { ComponentChildren } from 'preact';
import type { CompletenessPartFragment } from '../../generated/console.ts';
import type { Query } from '../api/query.ts';
import { clock, whole } from './format.ts';
import { Icon } from './icon.tsx';

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
export function cutText(completeness: CompletenessPartFragment, named: readonly string[] = []): string | null {
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
