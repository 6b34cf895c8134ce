/** Shows single values: states, names and ids, and buttons that copy them. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ConnectionStatus, Outcome, Stage } from '../../../generated/console.ts';
import { Icon } from './icons.tsx';
import { type ShapeName, Shape, Pips } from './shapes.tsx';
import { nameClass, shortId } from './text-format.ts';

type Look = { readonly shape: ShapeName; readonly word: string };

const OUTCOMES: Readonly<Record<Outcome, Look>> = {
  COMPLETED: { shape: 'completed', word: 'Completed' },
  FAILED: { shape: 'failed', word: 'Failed' },
  CANCELLED: { shape: 'cancelled', word: 'Cancelled' },
  EXPIRED: { shape: 'expired', word: 'Expired' },
  OUTCOME_UNKNOWN: { shape: 'unknown', word: 'Outcome unknown' },
};

/** The order in which outcomes are listed: the normal one first, and those that need a person last. */
export const OUTCOME_ORDER: readonly Outcome[] = ['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED', 'OUTCOME_UNKNOWN'];

const STAGES: Readonly<Record<Stage, { readonly bars: number; readonly word: string }>> = {
  ADMITTED: { bars: 1, word: 'Admitted' },
  QUEUED: { bars: 2, word: 'Queued' },
  DISPATCHED: { bars: 3, word: 'Dispatched' },
  ACKNOWLEDGED: { bars: 4, word: 'Acknowledged' },
  TERMINAL: { bars: 4, word: 'Ended' },
};

const CONNECTIONS: Readonly<Record<ConnectionStatus, Look>> = {
  CONNECTED: { shape: 'up', word: 'Connected' },
  STALE: { shape: 'stale', word: 'Stale' },
  DISCONNECTED: { shape: 'down', word: 'Disconnected' },
};

export const outcomeWord = (outcome: Outcome): string => OUTCOMES[outcome].word;
export const outcomeShape = (outcome: Outcome): ShapeName => OUTCOMES[outcome].shape;
export const stageWord = (stage: Stage): string => STAGES[stage].word;

type MarkProps = { readonly shape: ShapeName; readonly children: ComponentChildren };

export function StateMark({ shape, children }: MarkProps) {
  return (
    <span class={`st st-${shape}`}>
      <Shape name={shape} />
      {children}
    </span>
  );
}

export function OutcomeMark({ outcome }: { readonly outcome: Outcome }) {
  return <StateMark shape={OUTCOMES[outcome].shape}>{OUTCOMES[outcome].word}</StateMark>;
}

export function StageMark({ stage }: { readonly stage: Stage }) {
  return (
    <span class="st st-run">
      <span class="pips">
        <Pips filled={STAGES[stage].bars} />
      </span>
      {STAGES[stage].word}
    </span>
  );
}

/** Shows the state of a command: its outcome, or the last proven stage. */
export function CommandMark({ stage, outcome }: { readonly stage: Stage; readonly outcome: Outcome | null }) {
  return outcome === null ? <StageMark stage={stage} /> : <OutcomeMark outcome={outcome} />;
}

type ConnectionProps = {
  readonly status: ConnectionStatus;
  /** Whether the status is only the last recorded one, because the connection's node is silent. */
  readonly recorded: boolean;
  /** Whether the client reconnects often, so that a connected link means little. */
  readonly isUnstable?: boolean;
};

export function ConnectionMark({ status, recorded, isUnstable = false }: ConnectionProps) {
  if (recorded) return <StateMark shape="recorded">As last recorded</StateMark>;
  if (isUnstable && status === 'CONNECTED') return <StateMark shape="stale">Connected, unstable</StateMark>;
  return <StateMark shape={CONNECTIONS[status].shape}>{CONNECTIONS[status].word}</StateMark>;
}

type ButtonProps = Omit<JSX.IntrinsicElements['button'], 'class'> & { readonly text: string; readonly look?: string };

/** Shows a button with a text. `look`: CSS classes in addition to `btn`. */
export function Button({ text, look = '', ...button }: ButtonProps) {
  return (
    <button class={`btn ${look}`} type="button" {...button}>
      {text}
    </button>
  );
}

type LinkProps = Pick<ButtonProps, 'text' | 'look'> & {
  readonly href: string;
  readonly target?: '_blank';
  readonly rel?: 'noreferrer';
  readonly 'aria-current'?: 'true' | undefined;
};

/** Shows a link that looks like a button. */
export function LinkButton({ text, look = '', ...link }: LinkProps) {
  return (
    <a class={`btn ${look}`} {...link}>
      {text}
    </a>
  );
}

/** How long the button shows that it has copied, in milliseconds. */
const COPIED_MS = 1_500;

/** Returns a function that copies a text, and the label of its button, which shows the result for a short time. */
function useCopy(idle: string) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  const copy = (text: string): void => {
    copyText(text).then(
      () => setState('copied'),
      () => setState('failed'),
    );
    setTimeout(() => setState('idle'), COPIED_MS);
  };
  const label = { idle, copied: 'Copied', failed: 'The browser refused to copy' }[state];
  return { label, isCopied: state === 'copied', copy };
}

/** Shows a button that copies `text`. `what`: names the text for screen readers, as in "Copy command id". */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const { label, isCopied, copy } = useCopy(`Copy ${what}`);
  return (
    <button class="copy" type="button" aria-label={label} title={label} onClick={() => copy(text)}>
      <Icon name={isCopied ? 'done' : 'copy'} />
    </button>
  );
}

/**
 * Shows the button that copies the URL of the view, which contains the filters, the time window and the page of a list.
 */
export function CopyLink() {
  const { label, isCopied, copy } = useCopy('Copy link');
  return (
    <button class="btn btn-quiet copy-link" type="button" title={label} onClick={() => copy(location.href)}>
      <Icon name={isCopied ? 'done' : 'link'} />
      <span>{label}</span>
    </button>
  );
}

type CopyActionProps = { readonly text: () => string; readonly children: string; readonly isSmall?: boolean };

export function CopyAction({ text, children, isSmall = false }: CopyActionProps) {
  const { label, copy } = useCopy(children);
  return <Button look={isSmall ? 'btn-s' : ''} text={label} onClick={() => copy(text())} />;
}

/**
 * Copies a text. Without a secure origin there is no clipboard API, so the text is selected and copied as a user would
 * do it.
 */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  // oxlint-disable-next-line typescript/no-deprecated -- the only way to copy without a secure origin
  const copied = document.execCommand('copy');
  area.remove();
  if (!copied) throw new Error('The browser refused to copy.');
}

/** Shows a name as a link. A long name takes several lines. */
export function NameLink({ href, text }: { readonly href: string; readonly text: string }) {
  return (
    <a href={href} class={nameClass(text)}>
      {text}
    </a>
  );
}

/** Shows the end of an id, with the whole id as tooltip. */
export function ShortId({ id, href }: { readonly id: string; readonly href?: string | null }) {
  return href ? (
    <a class="id" href={href} title={id}>
      {shortId(id)}
    </a>
  ) : (
    <span class="id" title={id}>
      {shortId(id)}
    </span>
  );
}

export function FullId({ id, what }: { readonly id: string; readonly what: string }) {
  return (
    <>
      <span class="id id-full">{id}</span>
      <CopyButton text={id} what={what} />
    </>
  );
}

type CopyLineProps = { readonly text: string; readonly what?: string };

/** Shows lines to copy. `what`: names them for screen readers. */
export function CopyLine({ text, what = 'this' }: CopyLineProps) {
  return (
    <div class="copy-line">
      <pre class="pre pre-wrap">{text}</pre>
      <CopyButton text={text} what={what} />
    </div>
  );
}
