/**
 * Starts the console, and shows it in `#root`: the frame around the page of the current URL, with the rail, the top bar
 * and the choice of a theme, or the form that asks for a token.
 */
import { render } from 'preact';
import { LocationProvider, useLocation } from 'preact-iso';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { ViewerDocument } from '../../generated/console.ts';
import { brokenSince, liveState, paused } from './api/query.ts';
import { RequestError, errorOf, now } from './api/request.ts';
import { CONSOLE_PATH, RELAY_PATH, pagePath } from './base.ts';
import { InvokeDrawer } from './invoke/open.tsx';
import { keep, recall, redeemTicketOfUrl, signIn, signOut, signedOut, takeTokenOfOtherTab } from './session.ts';
import { ShellFacts, drainingCount, isAdmin, isPagePolled, silentNodes, viewer, waitCount } from './shell/facts.tsx';
import { Help, Palette, openPalette } from './shell/palette.tsx';
import { Routes, shownGroups, shownPages, KeepPlace, PageName } from './shell/pages.tsx';
import { Dialog, Switch } from './ui/dialogs.tsx';
import { listenForKeys, useKeys } from './ui/filters.tsx';
import { label, outage } from './ui/page.tsx';
import { CopyLink, Fault, Icon, Mark, StateMark, type IconName } from './ui/values.tsx';
import { age, chooseZone, clock, clockAt, isLocalTime, showHiddenCharacters, zoneName } from './ui/words.ts';
import './styles/base.css';
import './styles/controls.css';
import './styles/tables.css';
import './styles/forms.css';
import './styles/pages.css';

const root = document.querySelector('#root');
if (!root) throw new Error('The page has no element #root.');
showHiddenCharacters();
// The page is first rendered in a task of its own. The task that runs this script also ends the loading of the document,
// and the browser then lays out whatever is there, so that rendering within it would block the tab twice as long.
void redeemTicketOfUrl()
  .then(takeTokenOfOtherTab)
  .then(() => setTimeout(() => render(<App />, root)));

function App() {
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
      <PageName />
      <KeepPlace />
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
  useKeys(Object.fromEntries(shownPages().map(({ key, path }) => [`g ${key}`, () => route(pagePath(path))])));
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
      {shownGroups().map(
        ([name, pages]) =>
          pages.length > 0 && (
            <div class="rail-group" key={name}>
              <h2>{name}</h2>
              <ul>
                {pages.map((page) => (
                  <RailItem key={page.path} page={page} current={path} />
                ))}
              </ul>
            </div>
          ),
      )}
      <div class="rail-foot">
        <ThemeSwitch />
        <ZoneSwitch />
        <Who />
      </div>
    </nav>
  );
}

type RailItemProps = { readonly page: ReturnType<typeof shownPages>[number]; readonly current: string };

function RailItem({ page, current }: RailItemProps) {
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
  if (path === 'waits') return waitCount.value ? String(waitCount.value) : null;
  if (path !== 'nodes') return null;
  if (silentNodes.value.length > 0) return `${silentNodes.value.length} silent`;
  return drainingCount.value > 0 ? `${drainingCount.value} draining` : null;
}

function Who() {
  const who = viewer.value;
  if (!who) return null;
  const until =
    who.expiresAt === null
      ? 'Signed in with a token that does not expire'
      : `Signed in until ${clock(who.expiresAt)} ${zoneName()}`;
  return (
    <div class="who">
      <b>{who.name ?? who.userId}</b>
      <span>
        {who.kind === 'ADMIN' ? 'Administrator' : 'User'}. {until}
      </span>
      <button class="btn btn-s btn-quiet" type="button" onClick={signOut}>
        <Icon name="exit" />
        <span>Sign out</span>
      </button>
    </div>
  );
}

// Shows the top bar: the environment, the node that answers, the palette, and the state of live updates.

function Top() {
  const who = viewer.value;
  return (
    <header class={outage.value === null ? 'top' : 'top is-out'}>
      <button class="btn btn-icon btn-quiet menu-btn" type="button" popovertarget="rail" aria-label="Pages">
        <Icon name="menu" />
      </button>
      <Outage />
      <p class="place">
        <b class="env">{label || who?.nodeId || 'Callboard'}</b>
        {who && <span>{`${label ? `answered by ${who.nodeId}, ` : ''}${who.mode.toLowerCase()} mode`}</span>}
      </p>
      <button class="goto" type="button" onClick={openPalette}>
        <Icon name="search" />
        <span>{isAdmin.value ? 'Go to a user, client or command id' : 'Go to a client or command id'}</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      <CopyLink />
      <p class="live" role="status">
        <LiveMark />
      </p>
    </header>
  );
}

/** Says in the top bar since when the relay does not answer. The bar has its height at all times, so nothing moves. */
function Outage() {
  const { value } = outage;
  return (
    <p class="outage" role="alert">
      {value && (
        <>
          <Icon name="warn" />
          <span>
            <b>{value.isSilent ? 'The relay has not answered' : 'Live updates stopped'}</b>{' '}
            {value.isSilent ? 'since ' : 'at '}
            {clockAt(value.since)} {zoneName()}
            <span class="outage-more">, {age(now.value - value.since)} ago. What is shown is of before.</span>
          </span>
        </>
      )}
    </p>
  );
}

function LiveMark() {
  if (outage.value !== null) return null;
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
    case 'off':
      return isPagePolled.value ? <StateMark shape="up">Live</StateMark> : null;
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
  const [chosen, setChosen] = useState(() => themeOf(recall('local', KEY)));
  const choose = (theme: Theme): void => {
    setChosen(theme);
    keep('local', KEY, theme);
  };
  const choices = THEMES.map(({ theme, name, icon }) => ({
    value: theme,
    id: `theme-${theme}`,
    title: name,
    text: [<span class="sr">{name}</span>, <Icon name={icon} />],
  }));
  return <Switch legend="Theme" name="theme" choices={choices} chosen={chosen} onChoose={choose} />;
}

function themeOf(name: string | null): Theme {
  return THEMES.find(({ theme }) => theme === name)?.theme ?? 'system';
}

function ZoneSwitch() {
  const choices = [
    { value: false, text: 'UTC' },
    { value: true, text: 'Local' },
  ];
  return <Switch legend="Times" name="zone" choices={choices} chosen={isLocalTime.value} onChoose={chooseZone} />;
}

// Shows the form that asks for a token: as a page of its own, or in front of the page whose token has expired.

function SignInPage() {
  return (
    <main class="signin-page">
      <p class="brand">
        <Mark />
        <span>Callboard</span>
      </p>
      <h1>Sign in</h1>
      <SignInForm />
    </main>
  );
}

function SignInAgain() {
  return (
    <Dialog title="Sign in again to go on" onClose={() => undefined}>
      <p class="soft">Your token is no longer valid. This page and its filters stay as they are.</p>
      <SignInForm />
    </Dialog>
  );
}

function SignInForm() {
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const out = signedOut.value;
  const shown = problem ?? (out?.why === 'refused' ? out.message : null);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const given = String(new FormData(event.currentTarget).get('token') ?? '').trim();
    if (given === '' || busy) return;
    setBusy(true);
    check(given).then(
      () => signIn(given),
      (error: unknown) => {
        setProblem(errorOf(error).message);
        setBusy(false);
      },
    );
  };
  return (
    <form class="signin" onSubmit={submit}>
      <div class="field">
        <label for="token">Token</label>
        <input
          class="in"
          id="token"
          name="token"
          type="password"
          autocomplete="off"
          required
          autofocus
          aria-invalid={shown !== null}
          aria-describedby="token-hint"
        />
        {shown !== null && <Fault text={shown} />}
        <p class="hint" id="token-hint">
          An administrator’s token, or a user’s. Or run <code>npm run callboard console</code> in the relay’s clone,{' '}
          <code>npx callboard console</code> elsewhere, and open the link that it prints. The token is kept until this
          tab is closed.
        </p>
      </div>
      <button class="btn btn-primary" type="submit">
        {busy ? 'Signing in…' : 'Sign in'}
      </button>
    </form>
  );
}

/** Asks the relay whether it accepts the token. Rejects with RequestError if it does not. */
async function check(given: string): Promise<void> {
  const answer = await fetch(`${RELAY_PATH}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${given}`, 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query: ViewerDocument.toString() }),
  }).catch(() => null);
  if (answer === null) throw new RequestError('unreachable', 'The relay does not answer. Try again in a moment.');
  const text = await answer.text();
  if (answer.ok && !text.includes('"errors"')) return;
  if (answer.status === 429)
    throw new RequestError('rate_limited', 'Too many wrong tokens came from here. Wait a minute, then try again.');
  throw text.includes('"forbidden"')
    ? new RequestError('forbidden', 'This token may not read anything: a user’s token needs the scope “invoke”.')
    : new RequestError('unauthenticated', 'The relay does not accept this token.');
}
