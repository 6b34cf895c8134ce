/**
 * Starts the console and shows it in `#root`: the page of the current URL inside the common frame, or the sign-in form.
 */
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/controls.css';
import './styles/tables.css';
import './styles/forms.css';
import './styles/pages.css';
import { render } from 'preact';
import { LocationProvider, useLocation } from 'preact-iso';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { CONSOLE_PATH, pagePath } from './base.ts';
import { InvokeDrawer } from './invoke/open.tsx';
import { takeTokenOfOtherTab } from './other-tabs.ts';
import { redeemTicketOfUrl } from './sign-in-link.ts';
import { signedOut } from './session.ts';
import { ShellFacts } from './shell/facts.tsx';
import { Routes, shownPages, KeepPlace, PageName } from './shell/pages.tsx';
import { Help } from './shell/help.tsx';
import { Palette } from './shell/palette.tsx';
import { Rail } from './shell/rail.tsx';
import { SignInPage, SignInAgain } from './shell/sign-in.tsx';
import { Top } from './shell/top.tsx';
import { listenForKeys, useKeys } from './ui/keys.ts';
import { showHiddenCharacters } from './ui/hidden-characters.ts';

const root = document.querySelector('#root');
if (!root) throw new Error('The page has no element #root.');
showHiddenCharacters();
// The first page is rendered in a task of its own. The task that runs this script also completes the loading of the
// document, after which the browser lays out what is there. Rendering within that task would block the tab twice as
// long.
void redeemTicketOfUrl()
  .then(takeTokenOfOtherTab)
  .then(() => setTimeout(() => render(<App />, root)));

function App() {
  useLayoutEffect(listenForKeys, []);
  // If the tab was signed in before, its page stays mounted behind the form, so that no input or filter is lost.
  const [wasSignedIn, setWasSignedIn] = useState(signedOut.value === null);
  const out = signedOut.value;
  useEffect(() => setWasSignedIn(out === null || out.why === 'expired'), [out]);
  return (
    <LocationProvider scope={CONSOLE_PATH.slice(0, -1)}>
      {out === null || (out.why === 'expired' && wasSignedIn) ? <Frame /> : <SignInPage />}
      {out?.why === 'expired' && wasSignedIn && <SignInAgain />}
    </LocationProvider>
  );
}

function Frame() {
  return (
    <div class="app">
      <a class="skip" href="#main">
        To the page
      </a>
      <ShellFacts />
      <Rail />
      <Top />
      <main class="main" id="main" tabIndex={-1}>
        <Routes />
      </main>
      <PageName />
      <KeepPlace />
      <PageKeys />
      <Palette />
      <Help />
      <InvokeDrawer />
    </div>
  );
}

/** Handles shortcuts of two keys, `g` and a second one, which open a page. */
function PageKeys() {
  const { route } = useLocation();
  useKeys(Object.fromEntries(shownPages().map(({ key, path }) => [`g ${key}`, () => route(pagePath(path))])));
  return null;
}
