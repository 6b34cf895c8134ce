/** Shows the palette, which opens a page by its name, a user or a client by its exact id, and a command by its id. */
import { signal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { callHref, clientHref, pagePath, queryPath, userHref } from '../base.ts';
import { Dialog, TextField } from '../ui/dialogs.tsx';
import { keysOn, switchKeys, useKeys } from '../ui/filters.tsx';
import { isAdmin, viewer } from './facts.tsx';
import { CommandMark } from '../ui/values.tsx';
import { isCommandOnly, useCommandSearch } from './find-command.ts';
import { shownPages } from './pages.tsx';

const isOpen = signal(false);
export const openPalette = (): void => void (isOpen.value = true);

type Target = { readonly href: string; readonly text: string; readonly mark?: VNode };

export function Palette() {
  useKeys({ 'Ctrl K': openPalette });
  return isOpen.value ? <PaletteDialog /> : null;
}

function PaletteDialog() {
  const { route } = useLocation();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const asked = text.trim();
  const search = useCommandSearch(asked, !isAdmin.value);
  const commands = search.found.map((row) => ({
    href: callHref(row),
    text: `${row.action} on ${row.userId} / ${row.clientId}, …${row.commandId.slice(-8)}`,
    mark: <CommandMark {...row} />,
  }));
  const targets: readonly Target[] = [...commands, ...targetsOf(asked)];
  const close = (): void => void (isOpen.value = false);
  const go = (target: Target | undefined): void => {
    if (!target) return;
    close();
    route(target.href);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setChosen((was) => (was + step + targets.length) % Math.max(1, targets.length));
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    go(targets[chosen]);
  };
  return (
    <Dialog title="Go to" onClose={close} class="dialog palette">
      <form onSubmit={submit}>
        <TextField
          label={isAdmin.value ? LABEL : LABEL_OF_USER}
          id="palette-text"
          spellcheck={false}
          value={text}
          onText={(typed) => (setText(typed), setChosen(0))}
          onKeyDown={onKeyDown}
          aria-controls="palette-targets"
        />
        <ul id="palette-targets" class="palette-targets">
          {targets.map((target, at) => (
            <li key={target.href}>
              <a href={target.href} aria-current={at === chosen ? 'true' : undefined} onClick={close}>
                {target.text} {target.mark}
              </a>
            </li>
          ))}
        </ul>
        <p class="quiet" role="status">
          {search.state === 'looking' && 'Looking for a command with this id…'}
          {search.state === 'done' && search.found.length === 0 && search.why}
          {search.state === 'off' && targets.length === 0 && 'Nothing fits. Ids of users and clients are exact.'}
        </p>
      </form>
    </Dialog>
  );
}

const LABEL = 'A page, a user, user/client, or a command id: the whole of it, or its last eight characters';
const LABEL_OF_USER = 'A page, a client, or client/command id';

/** Returns the pages whose name contains the text, and the objects that may have the text as their id. */
function targetsOf(text: string): readonly Target[] {
  const pages = shownPages()
    .filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
    .map(({ path, name }) => ({ href: pagePath(path), text: name }));
  return [...(text === '' ? [] : idTargets(text)), ...pages].slice(0, 12);
}

function idTargets(text: string): readonly Target[] {
  if (isAdmin.value && isCommandOnly(text)) return [];
  const own = viewer.value?.userId ?? null;
  const parts = text.split('/').map((part) => part.trim());
  const [first = '', second = '', third = ''] = own === null ? parts : [own, ...parts.filter((part) => part !== own)];
  const client = { userId: first, clientId: second };
  if (third !== '') return [{ href: callHref({ ...client, commandId: third }), text: `Call ${third}` }];
  if (second !== '') return [{ href: clientHref(client), text: `Client ${first} / ${second}` }];
  const user = { href: userHref(first), text: `User ${first}` };
  const clients = { href: queryPath('clients', { user: first }), text: `Clients of ${first}` };
  return isAdmin.value ? [user, clients] : [clients];
}

const KEYS: readonly (readonly [string, string])[] = [
  ['?', 'Show this list'],
  ['Ctrl K', 'Go to a page, a user, a client, or a command by its id'],
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
