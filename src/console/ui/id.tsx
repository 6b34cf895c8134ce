/** Shows ids and other texts that a person copies, with buttons that copy them. */
import { useState } from 'preact/hooks';
import { shortId } from './format.ts';
import { Icon } from './icon.tsx';

/** The time for which the button shows that it has copied, in milliseconds. */
const COPIED_MS = 1_500;

/** Shows a button that copies `text`. `what` names the text for screen readers: "Copy command id". */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  const copy = (): void => {
    copyText(text).then(
      () => setState('copied'),
      () => setState('failed'),
    );
    setTimeout(() => setState('idle'), COPIED_MS);
  };
  const label = { idle: `Copy ${what}`, copied: 'Copied', failed: 'The browser refused to copy' }[state];
  return (
    <button class="copy" type="button" aria-label={label} title={label} onClick={copy}>
      <Icon name={state === 'copied' ? 'done' : 'copy'} />
    </button>
  );
}

/** Shows a copy button like CopyButton, with words in place of an icon. */
export function CopyAction({ text, children }: { readonly text: () => string; readonly children: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    void copyText(text()).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), COPIED_MS);
    });
  };
  return (
    <button class="btn" type="button" onClick={copy}>
      {copied ? 'Copied' : children}
    </button>
  );
}

/**
 * Copies a text to the clipboard. Browsers offer the clipboard on secure origins only; elsewhere the text is selected
 * and copied as a user would do it.
 */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (!copied) throw new Error('The browser refused to copy.');
}

/** Shows the end of an id, with the whole id as title. */
export function ShortId({ id, href }: { readonly id: string; readonly href?: string }) {
  return href === undefined ? (
    <span class="id" title={id}>
      {shortId(id)}
    </span>
  ) : (
    <a class="id" href={href} title={id}>
      {shortId(id)}
    </a>
  );
}

/** Shows a whole id with a button that copies it. */
export function FullId({ id, what }: { readonly id: string; readonly what: string }) {
  return (
    <>
      <span class="id id-full">{id}</span>
      <CopyButton text={id} what={what} />
    </>
  );
}

/** Shows a command or a program to copy. */
export function CopyLine({ text }: { readonly text: string }) {
  return (
    <div class="copy-line">
      <pre class="pre pre-wrap">{text}</pre>
      <CopyButton text={text} what="this" />
    </div>
  );
}
