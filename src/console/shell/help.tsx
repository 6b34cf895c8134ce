/** Shows the list of keyboard shortcuts, and the switch that turns them off. */
import { signal } from '@preact/signals';
import { Dialog } from '../ui/dialog.tsx';
import { isAdmin } from './facts.tsx';
import { keysOn, switchKeys, useKeys } from './keys.ts';
import { PAGES } from './pages.ts';

const isOpen = signal(false);

const KEYS: readonly (readonly [string, string])[] = [
  ['?', 'Show this list'],
  ['Ctrl K', 'Go to a page, a user, a client or a command'],
  ['/', 'Filter the list'],
  ['j  k', 'Move down and up in the list'],
  ['Enter', 'Open the row'],
  ['i', 'Invoke an action'],
  ['z', 'Choose the span of time that the plots show'],
  ['[  ]', 'Show a shorter or a longer span'],
  ['r', 'Read the page again'],
  ['.', 'Pause live updates, or go on'],
  ['Esc', 'Close what is open'],
];

export function Help() {
  useKeys({ '?': () => void (isOpen.value = true) });
  if (!isOpen.value) return null;
  const close = (): void => void (isOpen.value = false);
  return (
    <Dialog title="Keyboard" onClose={close}>
      <label class="check">
        <input type="checkbox" checked={keysOn.value} onChange={(event) => switchKeys(event.currentTarget.checked)} />
        <span>Single keys are shortcuts. They are always off while you type.</span>
      </label>
      <table class="tbl tbl-s keys">
        <tbody>
          {KEYS.map(([key, what]) => (
            <KeyRow key={key} name={key} what={what} />
          ))}
          {PAGES.filter(({ admin }) => !admin || isAdmin.value).map(({ key, name }) => (
            <KeyRow key={key} name={`g ${key}`} what={name} />
          ))}
        </tbody>
      </table>
      <div class="dialog-acts">
        <button class="btn" type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function KeyRow({ name, what }: { readonly name: string; readonly what: string }) {
  return (
    <tr>
      <th scope="row">
        <kbd>{name}</kbd>
      </th>
      <td>{what}</td>
    </tr>
  );
}
