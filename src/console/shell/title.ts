/** Sets the title of the tab: the page, then the environment. */
import { label } from './label.ts';

export function setTitle(page: string): void {
  document.title = [page, label, 'Callboard'].filter((part) => part !== '').join(' · ');
}
