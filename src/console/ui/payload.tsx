/** Shows payloads, sentences and faults as text. */
import { useState } from 'preact/hooks';
import { Icon } from './icons.tsx';
import { CopyButton, Button } from './values.tsx';
import { bytes } from './amounts.ts';

/** Shows a sentence of the relay or of a client, in which text between backquotes is code. */
export function Prose({ text }: { readonly text: string }) {
  const parts = text.split(/`([^`\n]+)`/);
  return <>{parts.map((part, at) => (at % 2 === 0 ? part : <code key={at}>{part}</code>))}</>;
}

/** Shows what is wrong with a person's input. */
export function Fault({ text, isAlert = true }: { readonly text: string; readonly isAlert?: boolean }) {
  return (
    <p class="err" role={isAlert ? 'alert' : undefined}>
      <Icon name="warn" />
      {text}
    </p>
  );
}

/** The number of characters of a long text that are shown until the user asks for the whole text. */
const SHOWN_CHARS = 16 * 1024;

export function Payload({ text, what }: { readonly text: string; readonly what: string }) {
  const [whole, setWhole] = useState(false);
  const [lines, setLines] = useState(false);
  const laidOut = lines ? layOut(text) : text;
  const cut = !whole && laidOut.length > SHOWN_CHARS;
  return (
    <div class="payload">
      <div class="payload-acts">
        <span class="quiet">{bytes(new Blob([text]).size)}</span>
        <CopyButton text={text} what={what} />
        <Button
          look="btn-s btn-quiet"
          text={lines ? 'As received' : 'Indented'}
          aria-pressed={lines}
          onClick={() => setLines(!lines)}
        />
      </div>
      <pre class="pre pre-wrap payload-text" tabIndex={0} aria-label={what}>
        {cut ? laidOut.slice(0, SHOWN_CHARS) : laidOut}
      </pre>
      {cut && <Button look="btn-s" text="Show all of it" onClick={() => setWhole(true)} />}
    </div>
  );
}

/** Returns the same JSON tokens with line breaks and spaces between them. No number and no text is changed. */
function layOut(text: string): string {
  let depth = 0;
  let inText = false;
  let out = '';
  const line = (): string => `\n${'  '.repeat(depth)}`;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (inText) {
      out += char;
      if (char === '\\') out += text.charAt(++at);
      else if (char === '"') inText = false;
    } else if (char === '"') {
      inText = true;
      out += char;
    } else if (char === '{' || char === '[') {
      const empty = /^\s*[}\]]/.test(text.slice(at + 1, at + 64));
      depth += 1;
      out += empty ? char : char + line();
    } else if (char === '}' || char === ']') {
      depth -= 1;
      out += /[{[]$/.test(out) ? char : line() + char;
    } else if (char === ',') out += char + line();
    else if (char === ':') out += ': ';
    else if (!/\s/.test(char)) out += char;
  }
  return out;
}
