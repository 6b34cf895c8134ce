/** Shows the list of keyboard shortcuts. */
import { useState } from 'preact/hooks';
import { CloseAct, Dialog } from '../ui/dialogs.tsx';
import { keysOn, switchKeys, useKeys } from '../ui/keys.ts';
import { shownPages } from './pages.tsx';

const KEYS: readonly (readonly [string, string])[] = [
  ['?', 'Show this list'],
  ['Ctrl K', 'Find a client, a user, an action, a page, an act, or a command by its id'],
  ['/', 'Filter the list'],
  ['j  k', 'Move down and up in the list'],
  ['Enter', 'Open the row'],
  ['i', 'Invoke an action'],
  ['Ctrl Enter', 'Send the call, from anywhere in the form'],
  ['z', 'Choose the span of time that the plots show'],
  ['[  ]', 'Show a shorter or a longer span'],
  ['r', 'Read the page again'],
  ['.', 'Pause live updates, or go on'],
  ['Esc', 'Close what is open'],
];

export function Help() {
  const [isOpen, setOpen] = useState(false);
  useKeys({ '?': () => setOpen(true) });
  if (!isOpen) return null;
  const close = (): void => setOpen(false);
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
          {shownPages().map(({ key, name }) => (
            <KeyRow key={key} name={`g ${key}`} what={name} />
          ))}
        </tbody>
      </table>
      <CloseAct onClose={close} />
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
