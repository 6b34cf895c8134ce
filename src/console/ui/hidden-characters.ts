/**
 * Makes hidden characters visible in every text that the console draws. Names, labels, summaries and ids come from
 * clients; a text with an override of its direction could pass for another one.
 */
import { options, type VNode } from 'preact';
import { visibleText } from '../../protocol/visible-text.ts';

/** The attributes whose text a person sees or hears. The values of fields stay exact, because they are sent again. */
const READ_ATTRIBUTES = ['title', 'aria-label', 'alt', 'placeholder', 'label'];

/** Makes Preact call `visibleText` for each text before it is drawn. Call it once, before the first page is drawn. */
export function showHiddenCharacters(): void {
  const next = options.vnode;
  options.vnode = (node) => {
    makeVisible(node);
    next?.(node);
  };
}

function makeVisible(node: VNode): void {
  const { type, props } = node;
  // A node of text has no type, and its text is in the place of its props.
  if (type === null && typeof props === 'string') Reflect.set(node, 'props', visibleText(props));
  if (typeof type !== 'string') return;
  for (const name of READ_ATTRIBUTES) {
    const text: unknown = Reflect.get(props, name);
    if (typeof text === 'string') Reflect.set(props, name, visibleText(text));
  }
}
