/** Sets the title of the tab: the page, then the environment. */
import { visibleText } from '../../protocol/visible-text.ts';
import { label } from './label.ts';

export function setTitle(page: string): void {
  document.title = visibleText([page, label, 'Callboard'].filter((part) => part !== '').join(' · '));
}
