/** Shows the whole console: the frame around the page of the current URL, or the form that asks for a token. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { LocationProvider, useLocation } from 'preact-iso';
import { CONSOLE_PATH, pagePath } from '../base.ts';
import { SignInAgain, SignInPage } from '../session/sign-in.tsx';
import { signedOut } from '../session/session.ts';
import { InvokeDrawer } from '../invoke/open.tsx';
import { ShellFacts, isAdmin } from './facts.tsx';
import { Help } from './help.tsx';
import { listenForKeys, useKeys } from './keys.ts';
import { Palette } from './palette.tsx';
import { PAGES } from './pages.ts';
import { Rail } from './rail.tsx';
import { Routes } from './routes.tsx';
import { Top } from './top.tsx';

export function App() {
  useLayoutEffect(listenForKeys, []);
  // The page of a tab that was signed in before stays mounted behind the form, so that no input or filter is lost.
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
      <PageKeys />
      <Palette />
      <Help />
      <InvokeDrawer />
    </div>
  );
}

/** Handles the key `g` followed by a second key, which opens a page. */
function PageKeys() {
  const { route } = useLocation();
  const shown = PAGES.filter(({ admin }) => !admin || isAdmin.value);
  useKeys(Object.fromEntries(shown.map(({ key, path }) => [`g ${key}`, () => route(pagePath(path))])));
  return null;
}
