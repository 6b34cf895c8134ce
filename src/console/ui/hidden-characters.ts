/**
 * Makes hidden characters visible in every text that the console draws. Names, labels, summaries and ids come from
 * clients, and a text that overrides its direction could look like another one.
 */
import { options, type VNode } from 'preact';
import { visibleText } from '../../protocol/visible-text.ts';

/** The attributes whose text a person sees or hears. Values of fields stay unchanged, because they are sent again. */
const READ_ATTRIBUTES = ['title', 'aria-label', 'alt', 'placeholder', 'label'];

/**
 * Makes Preact call `visibleText` for each text that it draws. It must be called once, before the first page is drawn.
 */
export function showHiddenCharacters(): void {
  const next = options.vnode;
  options.vnode = (node) => {
    makeVisible(node);
    next?.(node);
  };
}

function makeVisible(node: VNode): void {
  const { type, props } = node;
  // A text node has no type, and its text is in `props`.
  if (type === null && typeof props === 'string') Reflect.set(node, 'props', visibleText(props));
  if (typeof type !== 'string') return;
  for (const name of READ_ATTRIBUTES) {
    const text: unknown = Reflect.get(props, name);
    if (typeof text === 'string') Reflect.set(props, name, visibleText(text));
  }
}
