/** Shows the whole console: the frame around the page of the current URL, or the form that asks for a token. */
import { LocationProvider, useLocation } from 'preact-iso';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { brokenSince, liveState, paused } from '../api/query.ts';
import { now } from '../api/request.ts';
import { CONSOLE_PATH, pagePath } from '../base.ts';
import { InvokeDrawer } from '../invoke/open.tsx';
import { signOut, signedOut, token } from '../session.ts';
import { listenForKeys, useKeys } from '../ui/filters.tsx';
import { label } from '../ui/page.tsx';
import { Mark, Icon, StateMark, type IconName } from '../ui/values.tsx';
import { age, clock, plural } from '../ui/words.ts';
import { ShellFacts, isAdmin, silentNodes, viewer, waitCount } from './facts.tsx';
import { PAGES, PAGE_GROUPS, type PageEntry } from './pages.ts';
import { Help, Palette, openPalette } from './palette.tsx';
import { Routes } from './routes.tsx';
import { SignInAgain, SignInPage } from './sign-in.tsx';

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

// Shows the rail at the side: the links to the pages, the theme, and who is signed in.

function Rail() {
  const { path } = useLocation();
  return (
    <nav class="rail" id="rail" popover="auto" aria-label="Console">
      <a class="brand" href={pagePath('')}>
        <Mark />
        <span>Callboard</span>
      </a>
      {PAGE_GROUPS.map(({ name, pages }) => {
        const shown = pages.filter(({ admin }) => !admin || isAdmin.value);
        return (
          shown.length > 0 && (
            <div class="rail-group" key={name}>
              <h2>{name}</h2>
              <ul>
                {shown.map((page) => (
                  <RailItem key={page.path} page={page} current={path} />
                ))}
              </ul>
            </div>
          )
        );
      })}
      <div class="rail-foot">
        <ThemeSwitch />
        <Who />
      </div>
    </nav>
  );
}

function RailItem({ page, current }: { readonly page: PageEntry; readonly current: string }) {
  const href = pagePath(page.path);
  const isCurrent = page.path === '' ? `${current}/` === href : current === href || current.startsWith(`${href}/`);
  const count = countOf(page.path);
  const close = (): void => document.querySelector<HTMLElement>('#rail:popover-open')?.hidePopover();
  return (
    <li>
      <a class="rail-item" href={href} title={page.name} aria-current={isCurrent ? 'page' : undefined} onClick={close}>
        <Icon name={page.icon} />
        <span>{page.name}</span>
        {count !== null && <span class="rail-count">{count}</span>}
      </a>
    </li>
  );
}

/** Returns the figure beside the name of a page; null if there is none. */
function countOf(path: string): string | null {
  const silent = silentNodes.value.length;
  if (path === 'waits') return waitCount.value ? String(waitCount.value) : null;
  return path === 'nodes' && silent > 0 ? `${silent} silent` : null;
}

function Who() {
  const who = viewer.value;
  if (!who) return null;
  const admin = who.kind === 'ADMIN';
  const until =
    who.expiresAt === null
      ? 'Signed in with a token that does not expire'
      : `Signed in until ${clock(who.expiresAt)} UTC`;
  const name = admin ? subjectOf(token.value) : who.userId;
  const kind = admin ? (name === null ? '' : 'Administrator') : `User with ${plural(who.scopes.length, 'scope')}`;
  return (
    <div class="who">
      <b>{name ?? 'Administrator'}</b>
      <span>{[kind, until].filter((part) => part !== '').join('. ')}</span>
      <button class="btn btn-s btn-quiet" type="button" onClick={signOut}>
        <Icon name="exit" />
        <span>Sign out</span>
      </button>
    </div>
  );
}

/** Returns the subject that a JWT names. It is only shown; the relay decides whether the token is valid. */
function subjectOf(bearer: string | null): string | null {
  try {
    const [, payload = ''] = (bearer ?? '').split('.');
    const claims: unknown = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    const entry = Object.entries(claims ?? {}).find(([name]) => name === 'sub');
    return typeof entry?.[1] === 'string' ? entry[1] : null;
  } catch {
    return null;
  }
}

// Shows the top bar: the environment, the node that answers, the palette, and the state of live updates.

function Top() {
  const who = viewer.value;
  return (
    <header class="top">
      <button class="btn btn-icon btn-quiet menu-btn" type="button" popovertarget="rail" aria-label="Pages">
        <Icon name="menu" />
      </button>
      <p class="place">
        <b class="env">{label || who?.nodeId || 'Callboard'}</b>
        {who && <span>{`${label ? `answered by ${who.nodeId}, ` : ''}${who.mode.toLowerCase()} mode`}</span>}
      </p>
      <button class="goto" type="button" onClick={openPalette}>
        <Icon name="search" />
        <span>Go to a user, client or command id</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      <p class="live" role="status">
        <LiveMark />
      </p>
    </header>
  );
}

function LiveMark() {
  if (paused.value) return <StateMark shape="down">Paused</StateMark>;
  switch (liveState.value) {
    case 'live':
      return <StateMark shape="up">Live</StateMark>;
    case 'broken':
      return <Broken />;
    case 'opening':
      return <StateMark shape="recorded">Connecting</StateMark>;
    case 'asking':
      return <StateMark shape="up">Live, every 3 s</StateMark>;
    default:
      return null;
  }
}

/** The time for which the stream may be broken before the top bar shows it, in milliseconds. */
const QUIET_MS = 1_000;

function Broken() {
  const since = brokenSince.value ?? now.value;
  const [told, setTold] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setTold(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!told) return <StateMark shape="recorded">Connecting</StateMark>;
  return <StateMark shape="stale">{age(now.value - since)} behind</StateMark>;
}

// Shows the choice of a theme and stores it. The stylesheet reads the checked radio button.

const KEY = 'callboard:theme';
type Theme = 'system' | 'light' | 'dark';

const THEMES: readonly { readonly theme: Theme; readonly name: string; readonly icon: IconName }[] = [
  { theme: 'system', name: 'As the system', icon: 'system' },
  { theme: 'light', name: 'Light', icon: 'sun' },
  { theme: 'dark', name: 'Dark', icon: 'moon' },
];

function ThemeSwitch() {
  const [chosen, setChosen] = useState<Theme>(read);
  const choose = (theme: Theme): void => {
    setChosen(theme);
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // The browser blocks storage, so the choice lasts as long as the page.
    }
  };
  return (
    <fieldset class="switch">
      <legend class="sr">Theme</legend>
      {THEMES.map(({ theme, name, icon }) => (
        <label key={theme} title={name}>
          <input
            type="radio"
            name="theme"
            id={`theme-${theme}`}
            checked={chosen === theme}
            onChange={() => choose(theme)}
          />
          <span class="sr">{name}</span>
          <Icon name={icon} />
        </label>
      ))}
    </fieldset>
  );
}

function read(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return THEMES.find(({ theme }) => theme === kept)?.theme ?? 'system';
  } catch {
    return 'system';
  }
}
